// What training-operator v1.9.3 would do: its own reconcilers, run over a store in memory.
//
// Each line of the input is a case: a job, the pods, services and other objects that there are, and the gang
// scheduler. Each line of the output is what one reconcile made of it. The reconcilers walk Go maps, so one case may
// have several answers: it is run many times and each different answer is printed once.
//
// A line with a job to review is answered with what the webhooks say of it (review.go).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/jax"
	"github.com/kubeflow/training-operator/pkg/controller.v1/paddlepaddle"
	"github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	"github.com/kubeflow/training-operator/pkg/controller.v1/xgboost"
	"github.com/kubeflow/training-operator/pkg/util"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	plugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// How often a case is run at most, and after how many equal answers in a row the others are not waited for.
const (
	mostRuns = 60
	settled  = 20
)

type testCase struct {
	Job      json.RawMessage   `json:"job"`
	Pods     []corev1.Pod      `json:"pods"`
	Services []corev1.Service  `json:"services"`
	Others   []json.RawMessage `json:"others"`
	Gang     string            `json:"gang"`
	Review   json.RawMessage   `json:"review"`
	Older    json.RawMessage   `json:"older"`
}

type reconciler interface {
	Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
}

// The part of a manager that the reconcilers ask for.
type cluster struct {
	manager.Manager
	store *store
}

func (c cluster) GetClient() client.Client                        { return c.store }
func (c cluster) GetAPIReader() client.Reader                     { return c.store }
func (c cluster) GetScheme() *runtime.Scheme                      { return scheme.Scheme }
func (c cluster) GetConfig() *rest.Config                         { return &rest.Config{Host: "http://127.0.0.1:1"} }
func (c cluster) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

// Whether a job has replicas of one type alone, so that there is one order to walk them in.
func isSimple(job json.RawMessage) bool {
	var read struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	var types map[string]json.RawMessage
	if json.Unmarshal(job, &read) != nil {
		return true
	}
	for field, value := range read.Spec {
		if strings.HasSuffix(field, "ReplicaSpecs") && json.Unmarshal(value, &types) == nil {
			return len(types) < 2
		}
	}
	return true
}

type replicaSpecs = map[kubeflow.ReplicaType]*kubeflow.ReplicaSpec

func newJob(document json.RawMessage) (client.Object, *kubeflow.JobStatus, error) {
	var head struct{ Kind string }
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, nil, err
	}
	var job client.Object
	var status *kubeflow.JobStatus
	var specs *replicaSpecs
	switch head.Kind {
	case kubeflow.PyTorchJobKind:
		one := &kubeflow.PyTorchJob{}
		job, status, specs = one, &one.Status, &one.Spec.PyTorchReplicaSpecs
	case kubeflow.TFJobKind:
		one := &kubeflow.TFJob{}
		job, status, specs = one, &one.Status, &one.Spec.TFReplicaSpecs
	case kubeflow.XGBoostJobKind:
		one := &kubeflow.XGBoostJob{}
		job, status, specs = one, &one.Status, &one.Spec.XGBReplicaSpecs
	case kubeflow.PaddleJobKind:
		one := &kubeflow.PaddleJob{}
		job, status, specs = one, &one.Status, &one.Spec.PaddleReplicaSpecs
	case kubeflow.JAXJobKind:
		one := &kubeflow.JAXJob{}
		job, status, specs = one, &one.Status, &one.Spec.JAXReplicaSpecs
	default:
		return nil, nil, fmt.Errorf("no kind %q", head.Kind)
	}
	if err := json.Unmarshal(document, job); err != nil {
		return nil, nil, err
	}
	*specs = shuffled(*specs)
	return job, status, nil
}

// A small map is walked in the order in which it was filled, but for where that begins: filled in any order, each is as
// likely as the others.
func shuffled(specs replicaSpecs) replicaSpecs {
	var types []kubeflow.ReplicaType
	for one := range specs {
		types = append(types, one)
	}
	rand.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
	filled := replicaSpecs{}
	for _, one := range types {
		filled[one] = specs[one]
	}
	return filled
}

func newReconciler(kind string, in cluster, gang common.GangSchedulingSetupFunc) reconciler {
	pods, services := podRecorder{in.store}, serviceRecorder{in.store}
	switch kind {
	case kubeflow.PyTorchJobKind:
		one := pytorch.NewReconciler(in, gang)
		one.PodControl, one.ServiceControl = pods, services
		return one
	case kubeflow.TFJobKind:
		one := tensorflow.NewReconciler(in, gang)
		one.PodControl, one.ServiceControl = pods, services
		return one
	case kubeflow.XGBoostJobKind:
		one := xgboost.NewReconciler(in, gang)
		one.PodControl, one.ServiceControl = pods, services
		return one
	case kubeflow.PaddleJobKind:
		one := paddle.NewReconciler(in, gang)
		one.PodControl, one.ServiceControl = pods, services
		return one
	default:
		one := jax.NewReconciler(in, gang)
		one.PodControl, one.ServiceControl = pods, services
		return one
	}
}

func run(given testCase) (found *answer) {
	job, status, err := newJob(given.Job)
	if err != nil {
		return &answer{Error: err.Error()}
	}
	kind := reflect.TypeOf(job).Elem().Name()
	// The operator says so when a watch first shows it the job, before its reconciler sees it.
	reason := util.NewReason(kind, util.JobCreatedReason)
	util.UpdateJobConditions(status, kubeflow.JobCreated, corev1.ConditionTrue, reason, "created")
	kept, err := newStore(job, given)
	if err != nil {
		return &answer{Error: err.Error()}
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			found = &answer{Error: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	in := cluster{store: kept}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)}
	if _, err := newReconciler(kind, in, gangSetup(given.Gang, kept)).Reconcile(context.Background(), request); err != nil {
		kept.answer.Error = err.Error()
	}
	return kept.answer
}

func answers(line []byte) []json.RawMessage {
	var given testCase
	if err := json.Unmarshal(line, &given); err != nil {
		failed, _ := json.Marshal(answer{Error: err.Error()})
		return []json.RawMessage{failed}
	}
	if given.Review != nil {
		said, _ := json.Marshal(review(given.Review, given.Older))
		return []json.RawMessage{said}
	}
	seen := map[string]bool{}
	var all []json.RawMessage
	runs := mostRuns
	if isSimple(given.Job) {
		runs = 1
	}
	for count, equal := 0, 0; count < runs && equal < settled; count++ {
		text, err := json.Marshal(run(given).sorted())
		if err != nil {
			panic(err)
		}
		plain := withoutSeconds(string(text))
		if seen[plain] {
			equal++
			continue
		}
		seen[plain], equal = true, 0
		all = append(all, text)
	}
	return all
}

func main() {
	logrus.SetOutput(io.Discard)
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	ctrl.SetLogger(klog.Background().V(9))
	for _, add := range []func(*runtime.Scheme) error{kubeflow.AddToScheme, plugins.AddToScheme, volcano.AddToScheme} {
		utilruntime.Must(add(scheme.Scheme))
	}
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		text, err := json.Marshal(answers(lines.Bytes()))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\n", text)
		out.Flush()
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
}
