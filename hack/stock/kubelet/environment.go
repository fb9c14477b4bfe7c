package kubelet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// environment returns what a kubelet would set: the pod's name as the host's name, then envFrom, then env, where later ones win.
// Values are taken as they are: references to other variables in them are not resolved.
func (s *Server) environment(ctx context.Context, target *container) ([]string, error) {
	vars := map[string]string{
		"PATH":     os.Getenv("PATH"),
		"HOME":     target.dir,
		"HOSTNAME": target.pod.Name,
		"CLUSTER":  s.config.Cluster,
		"TERM":     "xterm",
	}
	refs := references{ctx: ctx, server: s, namespace: target.pod.Namespace}
	for _, from := range target.spec.EnvFrom {
		values, err := refs.all(from)
		if err != nil {
			return nil, err
		}
		for key, value := range values {
			vars[from.Prefix+key] = value
		}
	}
	for _, env := range target.spec.Env {
		value, ok, err := refs.one(target.pod, env)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", env.Name, err)
		}
		if ok {
			vars[env.Name] = value
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		list = append(list, name+"="+vars[name])
	}
	return list, nil
}

// references reads the ConfigMaps and Secrets of a namespace.
type references struct {
	ctx       context.Context
	server    *Server
	namespace string
}

func (r references) all(from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		return r.configMap(from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		return r.secret(from.SecretRef.Name, from.SecretRef.Optional)
	}
	return nil, nil
}

// one returns the value of a variable, and whether it is set at all.
func (r references) one(pod *corev1.Pod, env corev1.EnvVar) (value string, ok bool, err error) {
	from := env.ValueFrom
	switch {
	case from == nil:
		return env.Value, true, nil
	case from.ConfigMapKeyRef != nil:
		values, err := r.configMap(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
		return pick(values, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional, err)
	case from.SecretKeyRef != nil:
		values, err := r.secret(from.SecretKeyRef.Name, from.SecretKeyRef.Optional)
		return pick(values, from.SecretKeyRef.Key, from.SecretKeyRef.Optional, err)
	case from.FieldRef != nil:
		value, ok := podField(pod, from.FieldRef.FieldPath)
		return value, ok, nil
	}
	return "", false, nil
}

func pick(values map[string]string, key string, optional *bool, err error) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	value, ok := values[key]
	if !ok && !ptr.Deref(optional, false) {
		return "", false, fmt.Errorf("no key %q", key)
	}
	return value, ok, nil
}

func podField(pod *corev1.Pod, path string) (string, bool) {
	value, ok := map[string]string{
		"metadata.name":           pod.Name,
		"metadata.namespace":      pod.Namespace,
		"metadata.uid":            string(pod.UID),
		"spec.nodeName":           pod.Spec.NodeName,
		"spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.hostIP":           pod.Status.HostIP,
		"status.podIP":            pod.Status.PodIP,
	}[path]
	return value, ok
}

func (r references) configMap(name string, optional *bool) (map[string]string, error) {
	object, err := r.server.config.Client.CoreV1().ConfigMaps(r.namespace).Get(r.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	return object.Data, nil
}

func (r references) secret(name string, optional *bool) (map[string]string, error) {
	object, err := r.server.config.Client.CoreV1().Secrets(r.namespace).Get(r.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessOptional(err, optional)
	}
	values := map[string]string{}
	for key, value := range object.Data {
		values[key] = string(value)
	}
	return values, nil
}

func unlessOptional(err error, optional *bool) error {
	if ptr.Deref(optional, false) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
