import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A NameNode and a DataNode in this process, in the folder of the first argument, until standard input ends. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration conf = new Configuration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
        conf.setBoolean("dfs.permissions.enabled", true);
        conf.set("dfs.namenode.acls.enabled", "true");
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).format(true).build();
        cluster.waitActive();
        System.out.println("port=" + cluster.getNameNodePort());
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) { }
        cluster.shutdown(true);
        System.exit(0);
    }
}
