package typed

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// client-go generates its clients from the same names as the resources, in methods such as AppsV1().Deployments(namespace). So they are found by
// name, and no list here has to grow with the kinds.

// group is what client-go has for an API group, such as client.AppsV1().
func group(client kubernetes.Interface, of schema.GroupVersion) (reflect.Value, error) {
	name, _, _ := strings.Cut(cmp.Or(of.Group, "core"), ".")
	found := methodNamed(reflect.ValueOf(&client).Elem(), name+of.Version)
	if !found.IsValid() {
		return found, fmt.Errorf("no typed client for group %q in version %s", of.Group, of.Version)
	}
	return found.Call(nil)[0], nil
}

// methodNamed returns the method of that name, whatever is written in capitals, or nothing.
func methodNamed(of reflect.Value, name string) reflect.Value {
	for i := range of.NumMethod() {
		if strings.EqualFold(of.Type().Method(i).Name, name) {
			return of.Method(i)
		}
	}
	return reflect.Value{}
}

// REST returns the client that sends requests about objects of a group. The error is that of a group that client-go does not know.
func REST(client kubernetes.Interface, of schema.GroupVersion) (rest.Interface, error) {
	found, err := group(client, of)
	if err != nil {
		return nil, err
	}
	sends, ok := found.Interface().(interface{ RESTClient() rest.Interface })
	if !ok {
		return nil, fmt.Errorf("the typed client for group %q sends no requests", of.Group)
	}
	return sends.RESTClient(), nil
}

// stock is what client-go has for the objects of a resource in a namespace. The methods are those that For has found there.
type stock struct{ updateStatus, patch, list reflect.Value }

// For returns the client of a resource in a namespace. The error is that of a resource that client-go does not know, or that has no status.
func For(client kubernetes.Interface, resource schema.GroupVersionResource, namespace string) (Client, error) {
	in, err := group(client, resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	objects := methodNamed(in, resource.Resource)
	if !objects.IsValid() || objects.Type().NumIn() != 1 {
		return nil, fmt.Errorf("no typed client for %s in namespaces", resource)
	}
	found := objects.Call([]reflect.Value{reflect.ValueOf(namespace)})[0]
	out := stock{updateStatus: found.MethodByName("UpdateStatus"), patch: found.MethodByName("Patch"), list: found.MethodByName("List")}
	if !out.updateStatus.IsValid() || !out.patch.IsValid() || !out.list.IsValid() {
		return nil, fmt.Errorf("the typed client for %s writes no status", resource)
	}
	return out, nil
}

// UpdateStatus implements Client.
func (c stock) UpdateStatus(ctx context.Context, obj Object, options metav1.UpdateOptions) (Object, error) {
	return answer[Object](c.updateStatus, ctx, obj, options)
}

// Patch implements Client.
func (c stock) Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions) (Object, error) {
	return answer[Object](c.patch, ctx, name, patch, data, options)
}

// List implements Client.
func (c stock) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return answer[runtime.Object](c.list, ctx, options)
}

// answer calls a method that returns an object and an error.
func answer[O any](method reflect.Value, arguments ...any) (out O, err error) {
	in := make([]reflect.Value, len(arguments))
	for i, argument := range arguments {
		in[i] = reflect.ValueOf(argument)
	}
	results := method.Call(in)
	if err, failed := results[1].Interface().(error); failed {
		return out, err
	}
	return results[0].Interface().(O), nil
}
