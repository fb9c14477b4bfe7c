package engine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Take takes what a server says that it decides by, in the ConfigMap that it publishes. The error names what cannot be read.
func (o *Options) Take(settings *corev1.ConfigMap) (err error) {
	for key, field := range map[string]*time.Duration{
		v1alpha1.SettingClusterToleration: &o.Toleration, v1alpha1.SettingUnschedulableToleration: &o.Unschedulable,
	} {
		if *field, err = time.ParseDuration(settings.Data[key]); err != nil {
			return fmt.Errorf("ConfigMap %s/%s: %s: %w", settings.Namespace, settings.Name, key, err)
		}
	}
	return nil
}
