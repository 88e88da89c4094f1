import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * What Hudi's StorageBasedLockProvider asks of S3, by plain HTTP: stands in for the class of this name in hudi-aws,
 * which is not to be had for 1.x. What is written, when, and under which condition is decided by Hudi's provider.
 *
 * Janino compiles it, which Spark has, and which knows no generics.
 */
public class S3StorageLockClient implements StorageLockClient {
  public static final String ENDPOINT = "hoodie.test.s3.endpoint";

  /** moto wants to know who asks, and believes it. */
  private static final String SIGNED =
      "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x";

  private final String endpoint;
  private final String file;

  public S3StorageLockClient(String owner, String file, Properties options) {
    this.endpoint = options.getProperty(ENDPOINT);
    this.file = file;
  }

  public Pair readCurrentLockFile() {
    try {
      HttpURLConnection found = open(file);
      if (found.getResponseCode() == 404) {
        return Pair.of(LockGetResult.NOT_EXISTS, Option.empty());
      }
      if (found.getResponseCode() != 200) {
        return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
      }
      StorageLockFile read =
          StorageLockFile.createFromStream(new ByteArrayInputStream(content(found)), found.getHeaderField("ETag"));
      return Pair.of(LockGetResult.SUCCESS, Option.of(read));
    } catch (IOException e) {
      return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  public Pair tryUpsertLockFile(StorageLockData next, Option last) {
    try {
      HttpURLConnection put = open(file);
      if (last.isPresent()) {
        put.setRequestProperty("If-Match", ((StorageLockFile) last.get()).getVersionId());
      } else {
        put.setRequestProperty("If-None-Match", "*");
      }
      int status = send(put, StorageLockFile.toByteArray(next));
      if (status == 200) {
        return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(next, put.getHeaderField("ETag"))));
      }
      return Pair.of(
          status == 412 ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    } catch (IOException e) {
      return Pair.of(LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  /** Since 1.1, for the audit. */
  public Option readObject(String path, boolean checkExistsFirst) {
    try {
      HttpURLConnection found = open(path);
      return found.getResponseCode() == 200
          ? Option.of(new String(content(found), StandardCharsets.UTF_8)) : Option.empty();
    } catch (IOException e) {
      return Option.empty();
    }
  }

  /** Since 1.1, for the audit. */
  public boolean writeObject(String path, String content) {
    try {
      return send(open(path), content.getBytes(StandardCharsets.UTF_8)) == 200;
    } catch (IOException e) {
      return false;
    }
  }

  public void close() {}

  private HttpURLConnection open(String path) throws IOException {
    URL url = new URL(endpoint + "/" + path.substring(path.indexOf("://") + 3));
    HttpURLConnection found = (HttpURLConnection) url.openConnection();
    found.setRequestProperty("Authorization", SIGNED);
    return found;
  }

  private static int send(HttpURLConnection put, byte[] content) throws IOException {
    put.setRequestMethod("PUT");
    put.setDoOutput(true);
    put.setRequestProperty("Content-Type", "application/octet-stream");
    put.getOutputStream().write(content);
    return put.getResponseCode();
  }

  private static byte[] content(HttpURLConnection found) throws IOException {
    InputStream in = found.getInputStream();
    try {
      return in.readAllBytes();
    } finally {
      in.close();
    }
  }
}
