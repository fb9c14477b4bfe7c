package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func (s *site) drop(ctx context.Context, step, namespace string) error {
	return s.measure(ctx, step, func() error {
		if err := s.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return untilGone(ctx, api{s.name, s.client}, namespace)
	})
}

// untilReady waits until so many Deployments of a namespace, or of all, are ready with their replicas.
func (s *site) untilReady(ctx context.Context, namespace string, count int, replicas int32) error {
	ready := map[string]bool{}
	return s.follow(ctx, "deployments", namespace, &appsv1.Deployment{}, func(event watch.EventType, obj any) bool {
		if d, ok := obj.(*appsv1.Deployment); ok && isReady(d, replicas) {
			ready[d.Namespace+"/"+d.Name] = true
		}
		return len(ready) >= count
	})
}

// untilNone waits until a namespace has no object of a resource.
func (s *site) untilNone(ctx context.Context, resource, namespace string, example runtime.Object) error {
	there := map[string]bool{}
	return s.follow(ctx, resource, namespace, example, func(event watch.EventType, obj any) bool {
		o, ok := obj.(metav1.Object)
		switch {
		case !ok:
			return len(there) == 0 // all of the beginning is known
		case event == watch.Deleted:
			delete(there, o.GetName())
			return len(there) == 0
		}
		there[o.GetName()] = true
		return false
	})
}

// follow calls enough with every change, one at a time, and with nil once what was there at first is known, until that returns true.
func (s *site) follow(ctx context.Context, resource, namespace string, example runtime.Object, enough func(watch.EventType, any) bool) error {
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	client := s.client.CoreV1().RESTClient()
	if _, ok := example.(*appsv1.Deployment); ok {
		client = s.client.AppsV1().RESTClient()
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(client, resource, namespace, fields.Everything()), example, 0)
	var mu sync.Mutex
	done := make(chan struct{})
	look := func(event watch.EventType, obj any) {
		mu.Lock()
		defer mu.Unlock()
		select {
		case <-done:
		default:
			if enough(event, obj) {
				close(done)
			}
		}
	}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { look(watch.Added, obj) },
		UpdateFunc: func(_, obj any) { look(watch.Modified, obj) },
		DeleteFunc: func(obj any) {
			if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tomb.Obj
			}
			look(watch.Deleted, obj)
		},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { informer.RunWithContext(running) })
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return ctx.Err()
	}
	look(watch.Bookmark, nil)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// table reads a resource in pages, as the table that kubectl prints.
func (s *site) table(ctx context.Context, resource, namespace string) error {
	client := s.client.CoreV1().RESTClient()
	if resource == "deployments" {
		client = s.client.AppsV1().RESTClient()
	}
	next := ""
	for {
		request := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").
			Param("limit", fmt.Sprint(chunk)).Param("continue", next)
		body, err := request.Stream(ctx)
		if err != nil {
			return err
		}
		page, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
		if next, err = continueOf(page); err != nil || next == "" {
			return err
		}
	}
}

// watchAll reads a resource by a watch that begins with everything there is.
func (s *site) watchAll(ctx context.Context, resource, namespace string, count int) error {
	client := s.client.CoreV1().RESTClient()
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	events, err := client.Get().Namespace(namespace).Resource(resource).VersionedParams(&metav1.ListOptions{
		Watch: true, SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	got := 0
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added:
			got++
		case watch.Bookmark:
			return expect(nil, func() int { return min(got, count) }, count)
		case watch.Error:
			return fmt.Errorf("the watch ends: %v", event.Object)
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("the watch ended after %d of %d", got, count))
}

// continueOf returns where the next page of a list begins, "" after the last.
func continueOf(page []byte) (string, error) {
	var list struct {
		Metadata struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(page, &list)
	return list.Metadata.Continue, err
}

// times does something for every number below n, a few at a time.
func times(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(scaleWorkers)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

func inOrder(steps []func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// expect is err, or one that tells that there are not as many as there should be. A namespace has a ConfigMap of its own.
func expect(err error, count func() int, want int) error {
	if err != nil {
		return err
	}
	if got := count(); got != want && got != want+1 {
		return fmt.Errorf("there are %d, want %d", got, want)
	}
	return nil
}
