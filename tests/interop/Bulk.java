import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.avro.HoodieAvroUtils;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecordGlobalLocation;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.metadata.HoodieMetadataPayload;
import org.apache.hudi.storage.StoragePathInfo;

/**
 * Many objects of Hudi as one text, and back: peer_server would need some calls for each. Janino compiles it, which
 * Spark has, and which knows no generics.
 *
 * Lines end with END, their fields with NEXT.
 */
public class Bulk {
  private static final String END = "\u0001";
  private static final String NEXT = "\u0002";

  public List texts(String lines) {
    List found = new ArrayList();
    if (!lines.isEmpty()) {
      String[] split = lines.split(END, -1);
      for (int i = 0; i < split.length - 1; i++) {
        found.add(split[i]);
      }
    }
    return found;
  }

  public List pairs(String lines) {
    List found = new ArrayList();
    for (Iterator i = texts(lines).iterator(); i.hasNext();) {
      String[] sides = ((String) i.next()).split(NEXT, -1);
      found.add(Pair.of(sides[0], sides[1]));
    }
    return found;
  }

  public String files(List infos) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = infos.iterator(); i.hasNext();) {
      StoragePathInfo info = (StoragePathInfo) i.next();
      out.append(info.getPath().getName()).append(NEXT).append(info.getLength()).append(END);
    }
    return out.toString();
  }

  /** Column statistics in Avro's JSON form. Deleted records come with an empty payload in some releases. */
  public String stats(List records) throws Exception {
    StringBuilder out = new StringBuilder();
    for (Iterator i = records.iterator(); i.hasNext();) {
      HoodieMetadataPayload payload = (HoodieMetadataPayload) ((HoodieRecord) i.next()).getData();
      Option found = payload.getColumnStatMetadata();
      if (found.isPresent()) {
        byte[] json = HoodieAvroUtils.avroToJson((GenericRecord) found.get(), false);
        out.append(new String(json, StandardCharsets.UTF_8)).append(END);
      }
    }
    return out.toString();
  }

  /** The file names of the pairs of partition and file name that are keys. */
  public String names(Map byFile) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = byFile.keySet().iterator(); i.hasNext();) {
      out.append((String) ((Pair) i.next()).getRight()).append(END);
    }
    return out.toString();
  }

  public String blooms(Map byFile) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = byFile.entrySet().iterator(); i.hasNext();) {
      Map.Entry entry = (Map.Entry) i.next();
      String text = ((BloomFilter) entry.getValue()).serializeToString();
      out.append((String) ((Pair) entry.getKey()).getRight()).append(NEXT).append(text).append(END);
    }
    return out.toString();
  }

  public String locations(Map byKey) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = byKey.entrySet().iterator(); i.hasNext();) {
      Map.Entry entry = (Map.Entry) i.next();
      append(out, (String) entry.getKey(), (HoodieRecordGlobalLocation) entry.getValue());
    }
    return out.toString();
  }

  public String locations(List pairs) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = pairs.iterator(); i.hasNext();) {
      Pair pair = (Pair) i.next();
      append(out, (String) pair.getLeft(), (HoodieRecordGlobalLocation) pair.getRight());
    }
    return out.toString();
  }

  private void append(StringBuilder out, String key, HoodieRecordGlobalLocation at) {
    out.append(key).append(NEXT).append(at.getPartitionPath()).append(NEXT).append(at.getFileId());
    out.append(NEXT).append(at.getInstantTime()).append(END);
  }

  /** The keys of pairs. */
  public String keys(List pairs) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = pairs.iterator(); i.hasNext();) {
      out.append((String) ((Pair) i.next()).getLeft()).append(END);
    }
    return out.toString();
  }
}
