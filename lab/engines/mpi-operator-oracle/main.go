// What mpi-operator does in one look at an MPIJob: its own controller over fake clients, asked case by case.
//
// Standard input has a JSON document for each case, standard output one for each answer. The controller's method for
// one look is not exported, and its loop would look again at what it made: the linker leads us to the method.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
	kubeflowfake "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/fake"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	kubeflowinformers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	schedulerpluginsfake "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/fake"
	schedulerpluginsscheme "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/scheme"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"
	volcanoscheme "volcano.sh/apis/pkg/client/clientset/versioned/scheme"
)

//go:linkname sync github.com/kubeflow/mpi-operator/pkg/controller.(*MPIJobController).syncHandler
func sync(operator *controller.MPIJobController, key string) error

// Case is an MPIJob, what there is beside it, and how the operator is set up.
type Case struct {
	Name          string            `json:"name"`
	Job           json.RawMessage   `json:"job"`
	Objects       []json.RawMessage `json:"objects"`
	Gang          string            `json:"gang"`
	ClusterDomain string            `json:"clusterDomain"`
	Now           time.Time         `json:"now"`
}

// Action is one request that the operator made.
type Action struct {
	Verb        string         `json:"verb"`
	Resource    string         `json:"resource"`
	Subresource string         `json:"subresource,omitempty"`
	Name        string         `json:"name,omitempty"`
	Object      runtime.Object `json:"object,omitempty"`
}

// Answer is what came of a case.
type Answer struct {
	Name      string           `json:"name"`
	Defaulted *kubeflow.MPIJob `json:"defaulted"`
	Refused   []string         `json:"refused,omitempty"`
	Actions   []Action         `json:"actions"`
	Events    []string         `json:"events"`
	Error     string           `json:"error,omitempty"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubescheme.AddToScheme, scheme.AddToScheme, volcanoscheme.AddToScheme, schedulerpluginsscheme.AddToScheme,
	} {
		if err := add(all); err != nil {
			fail(err)
		}
	}
	decoder := serializer.NewCodecFactory(all).UniversalDeserializer()
	cases, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked Case
		if err := cases.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fail(err)
		}
		answer, err := look(asked, decoder)
		if err != nil {
			fail(fmt.Errorf("case %s: %w", asked.Name, err))
		}
		if err := answers.Encode(answer); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func look(asked Case, decoder runtime.Decoder) (*Answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	job := &kubeflow.MPIJob{}
	if err := json.Unmarshal(asked.Job, job); err != nil {
		return nil, err
	}
	answer := &Answer{Name: asked.Name, Defaulted: job.DeepCopy()}
	scheme.Scheme.Default(answer.Defaulted)
	for _, problem := range validation.ValidateMPIJob(answer.Defaulted) {
		answer.Refused = append(answer.Refused, problem.Field)
	}

	kube, kubeflowClient := kubefake.NewSimpleClientset(), kubeflowfake.NewSimpleClientset(job)
	volcano, schedulerPlugins := volcanofake.NewSimpleClientset(), schedulerpluginsfake.NewSimpleClientset()
	core := informers.NewSharedInformerFactory(kube, 0)
	jobs := kubeflowinformers.NewSharedInformerFactory(kubeflowClient, 0).Kubeflow().V2beta1().MPIJobs()
	operator, err := controller.NewMPIJobControllerWithClock(
		ctx, kube, kubeflowClient, volcano, schedulerPlugins,
		core.Core().V1().ConfigMaps(), core.Core().V1().Secrets(), core.Core().V1().Services(),
		core.Batch().V1().Jobs(), core.Core().V1().Pods(), core.Scheduling().V1().PriorityClasses(), jobs,
		clocktesting.NewFakeClock(asked.Now),
		&options.ServerOption{
			GangSchedulingName: asked.Gang, ClusterDomain: asked.ClusterDomain,
			ControllerRateLimit: 10, ControllerBurst: 100,
		},
	)
	if err != nil {
		return nil, err
	}
	events := record.NewFakeRecorder(100)
	setField(operator, "recorder", record.EventRecorder(events))

	if err := jobs.Informer().GetIndexer().Add(job); err != nil {
		return nil, err
	}
	stores := map[string]cache.SharedIndexInformer{
		"ConfigMap":     core.Core().V1().ConfigMaps().Informer(),
		"Secret":        core.Core().V1().Secrets().Informer(),
		"Service":       core.Core().V1().Services().Informer(),
		"Job":           core.Batch().V1().Jobs().Informer(),
		"Pod":           core.Core().V1().Pods().Informer(),
		"PriorityClass": core.Scheduling().V1().PriorityClasses().Informer(),
	}
	if operator.PodGroupCtrl != nil {
		stores["PodGroup"] = operator.PodGroupCtrl.PodGroupSharedIndexInformer()
	}
	for _, raw := range asked.Objects {
		object, kind, err := decoder.Decode(raw, nil, nil)
		if err != nil {
			return nil, err
		}
		store, known := stores[kind.Kind]
		if !known {
			return nil, fmt.Errorf("the operator does not look at a %s", kind.Kind)
		}
		if err := store.GetIndexer().Add(object); err != nil {
			return nil, err
		}
		tracker := kube.Tracker()
		if kind.Group == "scheduling.volcano.sh" {
			tracker = volcano.Tracker()
		} else if kind.Group == "scheduling.x-k8s.io" {
			tracker = schedulerPlugins.Tracker()
		}
		if err := tracker.Add(object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}

	if err := sync(operator, job.Namespace+"/"+job.Name); err != nil {
		answer.Error = err.Error()
	}
	for _, fake := range [][]testing.Action{
		kube.Actions(), volcano.Actions(), schedulerPlugins.Actions(), kubeflowClient.Actions(),
	} {
		for _, action := range fake {
			if described := describe(action); described != nil {
				answer.Actions = append(answer.Actions, *described)
			}
		}
	}
	for len(events.Events) > 0 {
		words := strings.SplitN(<-events.Events, " ", 3)
		answer.Events = append(answer.Events, words[0]+" "+words[1])
	}
	return answer, nil
}

func describe(action testing.Action) *Action {
	said := &Action{
		Verb: action.GetVerb(), Resource: action.GetResource().Resource, Subresource: action.GetSubresource(),
	}
	switch request := action.(type) {
	case testing.DeleteAction:
		said.Name = request.GetName()
	case testing.UpdateAction: // A creation is one too.
		said.Object = request.GetObject()
	default:
		return nil
	}
	return said
}

// setField replaces what the operator keeps to itself: who is told of events.
func setField(operator *controller.MPIJobController, name string, value any) {
	field := reflect.ValueOf(operator).Elem().FieldByName(name)
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}
