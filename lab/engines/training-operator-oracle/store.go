package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sort"

	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/control"
	autoscaling "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	plugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// What one reconcile did.
type answer struct {
	Pods     []corev1.Pod     `json:"pods"`
	Services []corev1.Service `json:"services"`
	Written  []client.Object  `json:"written"`
	Deleted  []string         `json:"deleted"`
	Status   any              `json:"status"`
	Error    string           `json:"error,omitempty"`
}

func (a *answer) sorted() *answer {
	sort.Slice(a.Pods, func(i, j int) bool { return a.Pods[i].Name < a.Pods[j].Name })
	sort.Slice(a.Services, func(i, j int) bool { return a.Services[i].Name < a.Services[j].Name })
	for _, service := range a.Services {
		ports := service.Spec.Ports
		sort.Slice(ports, func(i, j int) bool { return ports[i].Name < ports[j].Name })
	}
	sort.Strings(a.Deleted)
	return a
}

var moment = regexp.MustCompile(`T\d\d:\d\d:\d\dZ`)

// Two runs of a case differ in their seconds alone.
func withoutSeconds(text string) string { return moment.ReplaceAllString(text, "T") }

// The objects of one case, by kind and name, and what is done to them. What the reconcilers ask for beyond this is nil
// and shows as a panic.
type store struct {
	client.Client
	objects map[string]client.Object
	answer  *answer
}

func kindOf(object runtime.Object) string { return reflect.TypeOf(object).Elem().Name() }

func key(object runtime.Object, name string) string { return kindOf(object) + "/" + name }

func newStore(job client.Object, given testCase) (*store, error) {
	kept := &store{objects: map[string]client.Object{}, answer: &answer{}}
	kept.put(job)
	for i := range given.Pods {
		kept.put(given.Pods[i].DeepCopy())
	}
	for i := range given.Services {
		kept.put(given.Services[i].DeepCopy())
	}
	for _, document := range given.Others {
		var head metav1.TypeMeta
		if err := json.Unmarshal(document, &head); err != nil {
			return nil, err
		}
		var object client.Object = &plugins.PodGroup{}
		switch {
		case head.Kind == "HorizontalPodAutoscaler":
			object = &autoscaling.HorizontalPodAutoscaler{}
		case head.APIVersion == volcano.SchemeGroupVersion.String():
			object = &volcano.PodGroup{}
		}
		if err := json.Unmarshal(document, object); err != nil {
			return nil, err
		}
		kept.put(object)
	}
	return kept, nil
}

func (s *store) put(object client.Object) { s.objects[key(object, object.GetName())] = object }

func (s *store) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := s.objects[key(into, name.Name)]
	if !ok {
		return errors.NewNotFound(schema.GroupResource{Resource: kindOf(into)}, name.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (s *store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	for _, object := range s.objects {
		if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labelsOf(object)) {
			continue
		}
		switch list := into.(type) {
		case *corev1.PodList:
			if pod, ok := object.(*corev1.Pod); ok {
				list.Items = append(list.Items, *pod.DeepCopy())
			}
		case *corev1.ServiceList:
			if service, ok := object.(*corev1.Service); ok {
				list.Items = append(list.Items, *service.DeepCopy())
			}
		default:
			return fmt.Errorf("nobody lists %T", into)
		}
	}
	return nil
}

func (s *store) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return s.write(object)
}

func (s *store) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return s.write(object)
}

func (s *store) write(object client.Object) error {
	s.put(object)
	s.answer.Written = append(s.answer.Written, object.DeepCopyObject().(client.Object))
	return nil
}

func (s *store) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	s.delete(object, object.GetName())
	return nil
}

// Deletes what is there and is not going already, as the real controls do.
func (s *store) delete(of runtime.Object, name string) {
	found, ok := s.objects[key(of, name)]
	if !ok || found.GetDeletionTimestamp() != nil {
		return
	}
	now := metav1.Now()
	found.SetDeletionTimestamp(&now)
	s.answer.Deleted = append(s.answer.Deleted, key(of, name))
}

func (s *store) Status() client.SubResourceWriter { return statusWriter{store: s} }

type statusWriter struct {
	client.SubResourceWriter
	store *store
}

func (w statusWriter) Update(_ context.Context, job client.Object, _ ...client.SubResourceUpdateOption) error {
	w.store.answer.Status = reflect.ValueOf(job).Elem().FieldByName("Status").Interface()
	return nil
}

type podRecorder struct{ *store }

func (p podRecorder) CreatePods(string, *corev1.PodTemplateSpec, runtime.Object) error {
	panic("unused")
}

func (p podRecorder) CreatePodsOnNode(string, string, *corev1.PodTemplateSpec, runtime.Object, *metav1.OwnerReference) error {
	panic("unused")
}

func (p podRecorder) CreatePodsWithControllerRef(namespace string, template *corev1.PodTemplateSpec, job runtime.Object, owner *metav1.OwnerReference) error {
	pod, err := control.GetPodFromTemplate(template, job, owner)
	if err != nil {
		return err
	}
	pod.Namespace = namespace
	p.answer.Pods = append(p.answer.Pods, *pod)
	return nil
}

func (p podRecorder) DeletePod(_ string, name string, _ runtime.Object) error {
	p.delete(&corev1.Pod{}, name)
	return nil
}

func (p podRecorder) PatchPod(string, string, []byte) error { return nil }

type serviceRecorder struct{ *store }

func (r serviceRecorder) CreateServices(string, *corev1.Service, runtime.Object) error {
	panic("unused")
}

func (r serviceRecorder) CreateServicesWithControllerRef(namespace string, service *corev1.Service, _ runtime.Object, owner *metav1.OwnerReference) error {
	made := service.DeepCopy()
	made.Namespace = namespace
	made.OwnerReferences = []metav1.OwnerReference{*owner}
	r.answer.Services = append(r.answer.Services, *made)
	return nil
}

func (r serviceRecorder) DeleteService(_ string, name string, _ runtime.Object) error {
	r.delete(&corev1.Service{}, name)
	return nil
}

func (r serviceRecorder) PatchService(string, string, []byte) error { return nil }

// Volcano's own control, but for where PodGroups are kept.
type volcanoGroups struct {
	control.PodGroupControlInterface
	store *store
}

func (v volcanoGroups) GetPodGroup(_, name string) (metav1.Object, error) {
	group := &volcano.PodGroup{}
	if err := v.store.Get(context.Background(), client.ObjectKey{Name: name}, group); err != nil {
		return nil, err
	}
	return group, nil
}

func (v volcanoGroups) DeletePodGroup(_, name string) error {
	v.store.delete(&volcano.PodGroup{}, name)
	return nil
}

func (v volcanoGroups) CreatePodGroup(group client.Object) error { return v.store.write(group) }

func (v volcanoGroups) UpdatePodGroup(group client.Object) error { return v.store.write(group) }

func gangSetup(name string, kept *store) common.GangSchedulingSetupFunc {
	switch name {
	case "":
		return common.GenNonGangSchedulerSetupFunc()
	case "volcano":
		return func(controller *common.JobController) {
			controller.Config.GangScheduling = common.GangSchedulerVolcano
			controller.PodGroupControl = volcanoGroups{control.NewVolcanoControl(nil), kept}
		}
	default:
		return common.GenSchedulerPluginsSetupFunc(kept, name)
	}
}

func labelsOf(object client.Object) labels.Set { return object.GetLabels() }
