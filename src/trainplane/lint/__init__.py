"""Is this file good to install? The rules that an object meets in its life, asked of a file, with its lines.

    yaml_lines   YAML with the line of each part, bounded in what a text may cost
    runtimes     files of TrainingRuntimes and ClusterTrainingRuntimes; `trainplane runtime check` prints what it says

Nothing is fetched and no cluster is asked.
"""
