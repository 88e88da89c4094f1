import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A ResourceManager and two NodeManagers in this process, until standard input ends; the argument is the URL of the
 * file system on which applications are staged.
 */
public class MiniYarn {
    private static final List<String> TOLD = List.of(
        "fs.defaultFS", "yarn.resourcemanager.address", "yarn.resourcemanager.scheduler.address");

    public static void main(String[] arguments) throws Exception {
        Configuration conf = new YarnConfiguration();
        conf.set("fs.defaultFS", arguments[0]);
        conf.set("yarn.nodemanager.resource.memory-mb", "3072");
        conf.set("yarn.nodemanager.resource.cpu-vcores", "4");
        conf.set("yarn.scheduler.minimum-allocation-mb", "128");
        conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100");
        conf.set("yarn.scheduler.capacity.root.queues", "default");
        conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1");
        MiniYARNCluster cluster = new MiniYARNCluster("yarn", 2, 1, 1);
        cluster.init(conf);
        cluster.start();
        for (String key : TOLD) {
            System.out.println(key + "=" + cluster.getConfig().get(key));
        }
        System.out.println("ready");
        System.out.flush();
        while (System.in.read() >= 0) { }
        System.exit(0);
    }
}
