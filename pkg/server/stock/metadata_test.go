package stock

import (
	"context"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"
)

func TestAMetadataInformerEndsWithItsLastLease(t *testing.T) {
	gizmos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &metadataInformers{client: metadatafake.NewSimpleMetadataClient(scheme), informers: map[schema.GroupVersionResource]*leasedInformer{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel()
		f.Shutdown()
	}()

	var holders sync.WaitGroup
	hold := func() (of cache.SharedIndexInformer, letGo func()) {
		informer, stop := f.ForResource(gizmos).Informer(), make(chan struct{})
		f.Start(ctx.Done())
		if !f.WaitForCacheSync(ctx.Done())[gizmos] {
			t.Fatal("the informer does not run")
		}
		holders.Go(func() { informer.GetController().Run(stop) })
		return informer, func() { close(stop) }
	}
	first, letFirstGo := hold()
	second, letSecondGo := hold()
	if first != second {
		t.Error("two holders have an informer each")
	}
	letFirstGo()
	again, letAgainGo := hold()
	if again != second || again.IsStopped() {
		t.Error("the informer did not outlive its first lease")
	}
	letSecondGo()
	letAgainGo()
	holders.Wait()
	f.Shutdown()
	if !again.IsStopped() {
		t.Error("the informer runs on although nobody holds it")
	}
	next, letNextGo := hold()
	if next == again || next.IsStopped() {
		t.Error("the next holder has an informer that has ended")
	}
	letNextGo()
	holders.Wait()
}
