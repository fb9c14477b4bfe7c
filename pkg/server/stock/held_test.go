package stock

import (
	"context"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestHandlersOfHeldInformersHearNothingUntilTheyAreReleased(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	shared := informers.NewSharedInformerFactory(fake.NewClientset(pod), 0)
	defer shared.Shutdown()
	defer cancel()
	plain, early := make(chan string, 1), make(chan string, 1)
	tell := func(heard chan string) cache.ResourceEventHandler {
		return cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { heard <- obj.(*corev1.Pod).Name }}
	}
	if _, err := shared.Core().V1().Pods().Informer().AddEventHandler(tell(plain)); err != nil {
		t.Fatal(err)
	}
	held := holdInformers(ctx, shared)
	if _, err := held.Core().V1().Pods().Informer().AddEventHandler(tell(early)); err != nil {
		t.Fatal(err)
	}
	shared.StartWithContext(ctx)
	if got := <-plain; got != "web" {
		t.Errorf("the other factory's handler heard of %q", got)
	}
	select {
	case got := <-early:
		t.Errorf("a handler that is held heard of %q", got)
	default:
	}
	if pods, err := held.Core().V1().Pods().Lister().Pods("shop").Get("web"); err != nil || pods.Name != "web" {
		t.Errorf("a held informer lists no pod: %v", err)
	}
	held.release()
	if got := <-early; got != "web" {
		t.Errorf("the released handler heard of %q", got)
	}
}

func TestHandlersThatAreNeverReleasedEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	shared := informers.NewSharedInformerFactory(fake.NewClientset(pod), 0)
	held := holdInformers(ctx, shared)
	_, err := held.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { t.Error("it heard of something") },
	})
	if err != nil {
		t.Fatal(err)
	}
	shared.StartWithContext(ctx)
	shared.WaitForCacheSync(ctx.Done())
	cancel()
	shared.Shutdown() // would not return if a handler were stuck
}

// A handler of a group that came from the other factory would run while its controller is being made.
func TestEveryGroupOfInformersIsHeld(t *testing.T) {
	held := holdInformers(t.Context(), nil) // whoever asks the other factory panics
	factory := reflect.TypeFor[informers.SharedInformerFactory]()
	groups := 0
	for i := range factory.NumMethod() {
		method := factory.Method(i)
		if method.Type.NumIn() != 0 || method.Type.NumOut() != 1 || !strings.HasPrefix(method.Type.Out(0).PkgPath(), "k8s.io/client-go/informers/") {
			continue
		}
		groups++
		t.Run(method.Name, func(t *testing.T) {
			defer func() {
				if recover() != nil {
					t.Error("it comes from the other factory")
				}
			}()
			reflect.ValueOf(held).MethodByName(method.Name).Call(nil)
		})
	}
	if groups == 0 {
		t.Error("no group was found")
	}
}
