// What the webhooks of training-operator v1.9.3 say of a job.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	jaxwebhook "github.com/kubeflow/training-operator/pkg/webhooks/jax"
	paddlewebhook "github.com/kubeflow/training-operator/pkg/webhooks/paddlepaddle"
	pytorchwebhook "github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	tfwebhook "github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"
	xgboostwebhook "github.com/kubeflow/training-operator/pkg/webhooks/xgboost"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var validators = map[string]webhook.CustomValidator{
	kubeflow.PyTorchJobKind: &pytorchwebhook.Webhook{},
	kubeflow.TFJobKind:      &tfwebhook.Webhook{},
	kubeflow.XGBoostJobKind: &xgboostwebhook.Webhook{},
	kubeflow.PaddleJobKind:  &paddlewebhook.Webhook{},
	kubeflow.JAXJobKind:     &jaxwebhook.Webhook{},
}

// A job that is made, or that takes the place of an older one; the answer is why it is refused, or nothing.
func review(document, older json.RawMessage) (refused string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			refused = fmt.Sprintf("panic: %v", panicked)
		}
	}()
	job, _, err := newJob(document)
	if err != nil {
		return err.Error()
	}
	validator := validators[reflect.TypeOf(job).Elem().Name()]
	if older == nil {
		_, err = validator.ValidateCreate(context.Background(), job)
	} else {
		before, _, problem := newJob(older)
		if problem != nil {
			return problem.Error()
		}
		_, err = validator.ValidateUpdate(context.Background(), before, job)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
