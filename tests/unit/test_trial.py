"""What two users met when they tried the whole of it, line by line, and the tests that hold each line.

The trial was by kubectl and by the SDK from the wheel, on a cluster with one real node. `B2` and the like are its bugs;
the other lines are messages that were missing or misled, and what was good and must stay.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TRIAL = {
    "B1 logs and cause were lost when nobody watched": (
        "tests/unit/operator/test_witness.py::test_a_fault_is_kept_when_its_pod_is_gone",
        "tests/e2e/test_life.py::test_what_went_wrong_first_is_told_when_pods_and_jobset_are_gone",
    ),
    "B4 a crash loop was reported as training runs, again and again": (
        "tests/unit/operator/test_witness.py::test_pods_that_are_ready_again_after_a_fault_have_restarted",
        "tests/unit/operator/test_witness.py::test_a_crash_loop_is_read_a_few_times_and_shown_as_restarting",
    ),
    "kubectl get showed no state of pending, running and crash-looping jobs": (
        "tests/unit/lifecycle/test_phase.py::test_a_trainjob_has_one_phase",
        "tests/unit/operator/test_witness.py::test_a_pod_without_a_machine_is_why_it_is_pending",
        "tests/e2e/test_life.py::test_ddp_is_suspended_and_resumed_and_outlives_its_runtime",
    ),
    "describe of a failed job said that a job failed": (
        "tests/unit/operator/test_witness.py::test_the_failure_says_what_went_wrong_first",
        "tests/e2e/test_life.py::test_a_training_that_fails_says_why",
    ),
    "B2 scale_job ran a finished job again; suspend turned Complete into Suspended": (
        "tests/unit/client/kubernetes/test_replacing.py::test_what_is_over_stays_as_it_is",
        "tests/unit/client/test_clients.py::test_what_is_over_is_neither_suspended_nor_resumed",
        "tests/unit/client/reading/test_jobs.py::test_conditions_end_it_whatever_pods_say",
    ),
    "B2 scaling to the current number recreated the job": (
        "tests/unit/client/kubernetes/test_replacing.py::test_one_that_has_that_number_is_left_alone",
        "tests/unit/client/kubernetes/test_replacing.py::test_so_is_one_whose_runtime_says_that_number",
        "tests/sdk/local/test_life.py::test_scaling_to_the_number_that_it_has_starts_nothing_again",
    ),
    "B3 limits: {gpu: 1} was accepted and never started": (
        "tests/unit/admission/test_trainjobs.py::test_a_resource_that_kubernetes_does_not_know",
        "tests/integration/api/test_refused.py::test_both_say_the_same",
        "tests/unit/client/submission/test_compose.py::test_resources_that_mean_nothing_are_named",
    ),
    "B5 a command was dropped where no container hears it": (
        "tests/unit/render/test_jobset.py::test_the_label_is_missing",
        "tests/unit/render/test_jobset.py::test_the_container_has_another_name",
        "tests/unit/lint/test_runtimes.py::test_nobody_trains",
    ),
    "B6 the process backend started a rank for each of 100 CPUs": (
        "tests/unit/client/local/test_ranks.py::test_a_node_runs_no_more_than_there_are_processors",
        (
            "tests/sdk/local/test_supervision.py::"
            "test_a_hundred_processors_are_not_a_hundred_processes_unless_somebody_says_so"
        ),
    ),
    "B7 `see its log In the end:`": ("tests/unit/client/test_waiting.py::test_two_sentences_are_two",),
    "B7 `scheduling.: no machine`": (
        (
            "tests/unit/client/reading/test_causes.py::"
            "test_a_message_that_ends_with_a_stop_is_followed_by_advice_as_a_sentence_is"
        ),
    ),
    "B7 `no cluster can be used: no cluster is configured`": (
        "tests/unit/client/kubernetes/test_backend.py::test_a_cluster_that_cannot_be_found_is_the_users_to_name",
    ),
    "B7 `ssl:<ssl.SSLContext object…>`": (
        "tests/unit/kube/io/test_transport.py::test_no_connection_for_tls_names_no_object_of_pythons",
    ),
    "B7 containers and images on the process backend": (
        "tests/unit/client/reading/test_causes.py::test_codes_that_mean_something_are_explained",
    ),
    "B8 waiting for Running returned a Complete job, and no page said so": (
        "tests/unit/client/test_waiting.py::test_a_status_that_was_passed_on_the_way_counts",
    ),
    "B10 after a suspend, steps were Failed": (
        "tests/unit/client/reading/test_jobs.py::test_what_a_hold_ended_has_not_failed",
    ),
    "B11 the page of frameworks listed two twice": (
        "tests/unit/docs/test_frameworks_page.py::test_each_way_to_choose_once",
    ),
    "B12 a runtime that had not changed was called another": (
        "tests/unit/operator/test_webhooks.py::test_it_is_said_if_the_runtime_that_judges_is_not_the_one_of_today",
    ),
    "B13 train() without a trainer was Complete and had trained nothing": (
        "tests/unit/admission/test_trainjobs.py::test_nobody_says_what_to_run",
        (
            "tests/integration/operator/test_operator.py::"
            "test_a_trainjob_for_which_nobody_says_what_to_run_is_made_with_a_warning"
        ),
    ),
    "`4GB` and `2cores` by kubectl: the schema's regular expression": (
        (
            "tests/unit/operator/test_webhooks.py::"
            "test_what_is_no_amount_is_refused_in_words_before_the_schema_quotes_its_pattern"
        ),
        "tests/integration/operator/test_operator.py::test_what_is_no_amount_is_refused_in_words",
    ),
    "`numNodes: 0` was Complete with no pods": ("tests/unit/admission/test_trainjobs.py::test_a_training_has_a_node",),
    "`numProcPerNode: abc` had two overlapping reasons": (
        "tests/unit/admission/test_trainjobs.py::test_a_text_that_is_no_number_is_refused_once",
    ),
    "a runtime in use was deleted without a word": (
        (
            "tests/unit/operator/test_in_use.py::"
            "test_a_deletion_that_touches_no_queue_is_allowed_and_names_who_still_uses_it"
        ),
        "tests/integration/operator/test_operator.py::test_a_runtime_that_is_used_goes_with_a_warning",
    ),
    "operator down: the webhook's raw text": (
        "tests/unit/client/kubernetes/test_failures.py::test_errors",
        "tests/unit/client/kubernetes/test_failures.py::test_a_webhook_that_is_away_is_not_quoted",
    ),
    "warnings of admission never reached who uses the SDK": (
        "tests/unit/kube/io/test_transport.py::test_the_servers_warnings_are_logged_once",
        "tests/unit/kube/io/test_transport.py::test_what_a_warning_says",
    ),
    "what will not heal was waited for until the timeout": (
        "tests/unit/client/test_waiting.py::test_what_will_not_come_by_itself_is_given_up",
        "tests/unit/client/test_waiting.py::test_what_may_pass_is_waited_for",
        "tests/sdk/kubernetes/test_failures.py::test_what_will_not_come_by_itself_is_given_up",
    ),
    "logs of a pending or suspended job: `[]`": (
        "tests/unit/client/test_clients.py::test_a_job_that_printed_nothing_yet_says_why",
    ),
    "Ctrl-C: a traceback": (
        "tests/unit/client/test_clients.py::test_ctrl_c_that_nobody_catches_shows_no_traceback",
        "tests/unit/client/test_clients.py::test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back",
    ),
    "list_jobs() typed in plain Python: 10 KB": (
        "tests/unit/client/display/test_text.py::test_it_is_a_list_to_programs",
    ),
    "a function typed at the prompt is refused, and the page says so": (
        "tests/unit/client/code/test_main_shipped.py::test_source_that_is_nowhere_is_said_so",
    ),
    "Queue() without Kueue ran at once, silently": (
        "tests/unit/client/kubernetes/test_backend.py::test_a_queue_that_nobody_serves_is_said",
    ),
    "notebook: see its log, where the telling line is known": (
        "tests/unit/client/display/test_cards.py::test_the_line_that_tells_it_stands_in_place_of_see_its_log",
    ),
    "notebook: generated names said nothing": (
        "tests/unit/client/submission/test_naming.py::test_they_begin_with_what_runs",
        "tests/unit/client/submission/test_naming.py::test_whatever_it_is_called_the_name_is_one",
    ),
    "notebook: the column `of`": ("tests/unit/client/display/test_text.py::test_rows_tell_what_people_look_for",),
    "process backend: the shipped image has no effect, each time": (
        "tests/sdk/local/test_supervision.py::test_only_an_image_that_the_trainjob_asks_for_is_said_to_have_no_effect",
    ),
    "good: a missing runtime, long names, requests over limits": (
        "tests/unit/operator/test_webhooks.py::test_a_missing_runtime_is_a_403_that_says_so",
        "tests/unit/admission/test_lengths.py::test_the_sentence_says_how_long_it_may_be",
        "tests/unit/render/test_refused.py::test_what_cannot_be_is_refused_with_the_field",
    ),
    "good: suspend, resume, delete": (
        "tests/e2e/test_life.py::test_ddp_is_suspended_and_resumed_and_outlives_its_runtime",
    ),
    "good: docs/sdk.md as it stands": (
        "tests/sdk/tutorial/test_tutorial.py::test_the_page_leads_from_a_function_to_two_nodes_everywhere",
    ),
    "good: open files, lambdas and tokens are refused by name": (
        "tests/unit/client/code/test_main_shipped.py::test_live_objects_are_named",
        "tests/security/test_secrets_leaving.py::test_nothing_secret_is_at_the_api_server",
    ),
    "good: no rights, a bad token, no CRDs": (
        "tests/sdk/kubernetes/test_failures.py::test_who_may_not_is_told_what_is_lacking",
    ),
}


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("line", TRIAL)
def test_what_holds_it_is_there(line: str) -> None:
    for test in TRIAL[line]:
        file, _, name = test.partition("::")
        assert name in functions_of(file), test
