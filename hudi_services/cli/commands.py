"""The commands, in the order of the program's help."""

from ..options import creation_keys
from ..runs.request import Mode
from .command import Command

_DOES = "The command does so without this flag, too."
_SPARK = ("spark_master", "spark_memory")
_PLAN = (
    *("instant", "engine", "parallelism", "memory_per_task", "time_limit", *_SPARK, "bootstrap_source", "retry"),
    *("mode", "schedule_only"),
)
_CLUSTERING = (*_PLAN, "retry_last_failed", "max_processing_millis", "publish", "all_or_nothing")
_RETRY_WITH_SPARK = "Try again up to N times, when the store, the lock or Spark fails."

COMMANDS = (
    Command(
        name="schedule",
        help="""Write a clustering plan, or a compaction plan.

        A clustering plan names the small files of each partition, packed into groups; `execute` executes it. With
        --service compaction, the plan names file groups with log files; `compact` executes it. The command rewrites no
        data and starts no Spark. Other flags of Hudi's HoodieClusteringJob are accepted.
        """,
        service="clustering",
        fixed={"mode": Mode.SCHEDULE},
        takes=(*_CLUSTERING, "planned"),
        hidden={*_CLUSTERING} - {"instant", "memory_per_task", "bootstrap_source", "retry"},
        helps={
            "instant": "Give the new plan this instant, as yyyyMMddHHmmssSSS. Default: the time of the clock now.",
            "memory_per_task": "With --dry-run: estimate for tasks with this much memory for data, such as 512m "
            "(hudi.services.memory.per.task).",
            "dry_run": "Write no plan. Say for each file slice why it would be in the plan or not, and estimate rows, "
            "new files and memory.",
            "apply": f"Write the plan. {_DOES}",
        },
    ),
    Command(
        name="execute",
        help="""Execute a clustering plan.

        Spark rewrites the files of the plan. Before the commit, the command compares the rows of the new files with
        those of the old ones. When a row was lost, doubled or changed, it commits nothing and ends with exit code 5.
        """,
        service="clustering",
        fixed={"mode": Mode.EXECUTE},
        takes=_CLUSTERING,
        helps={
            "parallelism": "Rewrite at most N groups at once (hoodie.clustering.max.parallelism). Default: as many as "
            "Spark has cores for.",
            "retry": _RETRY_WITH_SPARK,
            "dry_run": "Rewrite and commit nothing. Say which plan would be executed, whether its files are unchanged, "
            "and estimate rows, new files and memory.",
            "apply": f"Execute the plan. {_DOES}",
        },
    ),
    Command(
        name="compact",
        help="""Execute a compaction plan of a merge-on-read table.

        Spark merges the log files of each file group in the plan into a new base file. Before the commit, the command
        compares the rows of the new files with the merged rows. When a row was lost, doubled or changed, it commits
        nothing and ends with exit code 5. `schedule --service compaction` writes a plan. Takes the flags of Hudi's
        HoodieCompactor.
        """,
        service="compaction",
        fixed={"mode": Mode.EXECUTE},
        takes=(*_PLAN, "strategy", "schema_file"),
        hidden={"schema_file"},
        helps={
            "instant": "The pending compaction to execute. Default: the earliest. --mode scheduleAndExecute ignores "
            "it.",
            "parallelism": "Compact at most N file groups at once (hoodie.clustering.max.parallelism). Default: as "
            "many as Spark has cores for.",
            "memory_per_task": "Memory for the log records and rows of one file group, such as 512m "
            "(hudi.services.memory.per.task). Default: what Spark's settings leave for Python.",
            "time_limit": "Begin no file group that would not be compacted TIME after the start, such as 30m. The next "
            "compact takes over what is finished, and does the rest (hudi.services.time.limit).",
            "retry": _RETRY_WITH_SPARK,
            "dry_run": "Merge and commit nothing. Say which plan would be executed, and whether its files are "
            "unchanged.",
            "apply": f"Execute the compaction. {_DOES}",
        },
    ),
    Command(
        name="clean",
        help="""Delete old files that no reader needs any more.

        Finishes cleans that were begun, plans a new one by Hudi's rules, and deletes the files. Starts no Spark. Files
        that belong to no instant are found by the command orphan-files.
        """,
        service="clean",
        takes=("retry",),
        helps={
            "dry_run": "Delete nothing. Say which files would be deleted, which stay, and by which rule.",
            "apply": f"Delete the files. {_DOES}",
        },
    ),
    Command(
        name="archive",
        help="""Move old instants from the timeline to the archive.

        Chooses them by Hudi's rules, and does the same for the metadata table. No data file is touched. Starts no
        Spark.
        """,
        service="archive",
        takes=("retry",),
        helps={
            "dry_run": "Archive nothing. Say which instants would go, and what the others stay for.",
            "apply": f"Archive the instants. {_DOES}",
        },
    ),
    Command(
        name="index-bootstrap",
        help="""Build the record-level index of a table.

        Spark reads the record keys of all base files and writes the index. Writers may work meanwhile. The index
        becomes visible in one step at the end. Before you start, set hoodie.metadata.record.index.enable=true and
        hoodie.metadata.index.async=true in every writer: a writer without them drops the index.
        """,
        service="index-bootstrap",
        takes=(
            *("index_types", "file_group_count", "min_file_group_count", "max_file_group_count", "resume"),
            *("index", "partitioned", "engine", "parallelism", *_SPARK, "retry"),
        ),
        helps={
            "retry": _RETRY_WITH_SPARK,
            "dry_run": "Build nothing. Say how many files and keys would be read, and how many file groups the index "
            "would have.",
            "apply": f"Build the index. {_DOES}",
        },
    ),
    Command(
        name="index-rescale",
        help="""Give the record index another number of file groups.

        Reads the entries of the index and no data file. Writers may work meanwhile. The new file groups take the place
        of the old ones in one step at the end. Without --file-group-count, the number of keys decides.
        """,
        service="index-rescale",
        takes=(
            *("file_group_count", "min_file_group_count", "max_file_group_count", "partition", "resume"),
            *("engine", "parallelism", *_SPARK, "retry"),
        ),
        helps={
            "retry": _RETRY_WITH_SPARK,
            "parallelism": "Read and write at most N file groups at once (hoodie.clustering.max.parallelism). Default: "
            "as many as Spark has cores for.",
            "dry_run": "Build nothing. Say how many file groups, keys and bytes would be read, and how many file "
            "groups the index would have.",
            "apply": f"Build the file groups. {_DOES}",
        },
    ),
    Command(
        name="index-drop",
        help="""Drop an index of the metadata table.

        Readers and writers do without the index from the first step on. No row and no data file is touched. A writer of
        Hudi whose options ask for the index builds it again.
        """,
        service="index-drop",
        takes=("index",),
        helps={
            "index": "The index to drop: record, secondary:NAME, expression:NAME, or the name of a metadata partition.",
            "dry_run": "Drop nothing. Say how many files and bytes the index has.",
            "apply": f"Drop the index. {_DOES}",
        },
    ),
    Command(
        name="index-lookup",
        help="""Look up record keys in the record index.

        Lists partition, file group and instant of each key that the index has. Only reads, and only the metadata table.
        """,
        service="index-lookup",
        switch="",
        acts=False,
        takes=("keys_file", "partition"),
        hidden={"dry_run", "apply", "lock_wait"},
        helps={},
    ),
    Command(
        name="advise",
        help="""Advise for or against a clustering, from the predicates of your queries.

        Says which layout, columns and file size would let these predicates read least, how many files and bytes each
        would read, and whether that is worth the rewrite. Looks at statistics and a sample of rows. Only reads, and
        starts no Spark. Predicates in SQL need the extra advise: pip install '.[advise]'.
        """,
        service="advise",
        switch="",
        acts=False,
        takes=("predicates_file", "executions", "least_percent"),
        hidden={"dry_run", "apply", "lock_wait"},
        helps={},
    ),
    Command(
        name="rollback",
        help="""Roll back a write that failed.

        Deletes the files that the write left, and its instant, as Apache Hudi does. The command refuses while the
        writer gives signs of life. With --completed it also rolls back the newest completed commit.
        """,
        service="rollback",
        takes=("instant", "completed"),
        helps={
            "dry_run": "Change nothing. List the files that would be deleted, and those that readers would see again.",
            "apply": f"Roll back. {_DOES}",
        },
    ),
    Command(
        name="undo",
        help="""Undo a completed clustering.

        Readers see the old files again. This works as long as the old files exist and no writer has changed the new
        files. Rows that were written to other files since then stay.
        """,
        service="undo",
        takes=("instant",),
        helps={
            "instant": "The completed clustering to undo, named by its instant on the timeline.",
            "dry_run": "Change nothing. List the new files that would be deleted, and the old ones that readers would "
            "see again.",
            "apply": f"Undo the clustering. {_DOES}",
        },
    ),
    Command(
        name="recover",
        help="""Show what is stuck on a table, and repair it.

        Lists every pending instant with the evidence and a decision: resume, roll back, drop the plan, or wait. Changes
        nothing until you add --apply. Starts no Spark.
        """,
        service="recover",
        acts=False,
        switch="apply",
        takes=("instant", "abandoned_after"),
        helps={"apply": "Carry out the decisions that the command shows."},
    ),
    Command(
        name="orphan-files",
        help="""Find files that belong to no instant.

        Failed attempts leave such files. Without flags the command only lists them. With --apply it moves them to a
        quarantine inside the table's folder, from which --restore puts them back, and --delete-older-than deletes them.
        Starts no Spark.
        """,
        service="orphan-files",
        acts=False,
        takes=("quarantine", "delete_older_than_days", "min_age_minutes", "retry"),
        helps={
            "dry_run": f"Move and delete nothing, and say what would be done. {_DOES}",
            "apply": "Move the orphan files to a new quarantine, from which they can be put back. With --restore or "
            "--delete-older-than: do that.",
        },
    ),
    Command(
        name="validate",
        help="""Compare the metadata table with the files of the table.

        Computes every record of the metadata table from the files, lists each difference, and ends with exit code 5
        when one is harmful. Changes nothing until you add --apply. Starts no Spark.
        """,
        service="validate",
        acts=False,
        switch="repair",
        takes=("drop_missing_partitions", "strict", "store"),
        helps={"apply": "Repair: write the wrong records again, in one commit of the metadata table, and no others."},
    ),
    Command(
        name="doctor",
        help="""Say whether a table is all right, and which command mends what is not.

        Looks at what is pending and left over, at cleans, the archive and compactions and what holds them back, at
        file sizes, at the metadata table, and at options that work against each other. Ends with exit code 5 when rows
        are hidden or in danger, with 8 when something else should be done. Changes nothing, starts no Spark, and reads
        samples of large tables.
        """,
        service="doctor",
        acts=False,
        switch="",
        takes=("longest_query_minutes", "deep"),
        hidden={"dry_run", "apply", "lock_wait"},
        helps={
            "output_format": "What is printed: table, a report to read; json, one document; or prometheus, the metrics "
            "of the table in Prometheus's text format, which needs the extra metrics.",
            "dry_run": "Change nothing: the command never does.",
            "apply": "Change nothing: the command never does.",
        },
    ),
    Command(
        name="report",
        help="""Write a page about a table, as one HTML file to open from a mail.

        On top is what `doctor` finds. Below are pictures: sizes and rows of files and partitions, how much files
        overlap, what the bytes are, how the table grew, and the timeline with what is pending and what holds back
        cleans and the archive. The page has no script and asks no server for anything. Changes nothing of the table,
        and starts no Spark. Needs the extra report: pip install '.[report]'.
        """,
        service="report",
        acts=False,
        switch="",
        takes=("html", "longest_query_minutes"),
        hidden={"dry_run", "apply", "lock_wait"},
        helps={
            "dry_run": "Change nothing: the command never does.",
            "apply": "Change nothing: the command never does.",
        },
    ),
    Command(
        name="fleet",
        help="""Look after many tables in one run: what is due where, and what is worth it most.

        Looks at each table as `doctor` does, ranks the services that are due by what they gain for each byte that they
        rewrite, and with --apply runs them in this order, several tables at a time, until a budget of bytes or of time
        is used up. A table that is broken, slow or locked does not stop the others. Clusterings and compactions run in
        one Spark application, or in processes of this machine.
        """,
        service="fleet",
        place="tables_file",
        acts=False,
        switch="apply",
        takes=(
            *("services", "max_bytes", "time_limit", "max_requests", "tables_at_once", "table_time"),
            *("results", "resume", "longest_query_minutes", "engine", "parallelism", "memory_per_task", *_SPARK),
            "retry",
        ),
        hidden={"table_name"},
        helps={
            "apply": "Run the services that are due.",
            "time_limit": "Begin no service and no group that would not be finished TIME after the start, such as 2h "
            "(hudi.services.time.limit).",
            "parallelism": "Rewrite at most N groups of a table at once (hoodie.clustering.max.parallelism).",
            "memory_per_task": "Memory for the data of one task of a clustering or compaction, such as 512m "
            "(hudi.services.memory.per.task). Default: a share of this machine, or what Spark's settings leave.",
            "retry": "Let each service try again, up to N times, when the store, the lock or Spark fails.",
        },
    ),
    Command(
        name="write",
        help="""Write rows to a table, or delete rows, in one commit.

        The rows are those of files; a delete takes their keys. With --record-key the table is created where there is
        none. This process reads and writes the rows, and starts no Spark, unless you run the command by spark-submit,
        or give --spark-master or --spark-memory: use Spark for more rows than one machine writes. Rows that do not fit
        into memory wait on the local disk.
        """,
        service="write",
        takes=(
            *("input", "operation", "input_format", "record_key", "ordering", "partition_by", "table_type"),
            *("table_version", "partitions", "bootstrap_source", *_SPARK),
        ),
        keys={"table_name": creation_keys.TABLE_NAME},
        helps={
            "dry_run": "Write nothing. Read the rows, and say to how many files they would go; where there is no "
            "table, say only that it would be created.",
            "apply": f"Do the work. {_DOES}",
            "spark_master": "Let tasks of Spark read and write the rows, with this master. They do so under "
            "spark-submit, too. Otherwise this process reads and writes them.",
            "spark_memory": "Let tasks of Spark read and write the rows, with this memory, such as 4g, for the driver "
            "and each executor.",
            "table_name": "The name of a new table. Default: the name of its folder. Stop with exit code 2 when the "
            "table that is there has another name.",
        },
    ),
)
