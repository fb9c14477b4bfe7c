package specs

import (
	"runtime"
	"testing"
	"time"

	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documents are some that the stock server makes by the configurations of a world.
func (w *world) documents() [2]string {
	paths := mux.NewPathRecorderMux("stock")
	routes.OpenAPI{Config: w.v2}.InstallV2(w.services, paths)
	routes.OpenAPI{V3Config: w.v3}.InstallV3(w.services, paths)
	return [2]string{ask(paths, path).Body.String(), ask(paths, pathV3+"/api/v1").Body.String()}
}

func TestNothingThatADocumentIsMadeOfIsKept(t *testing.T) {
	for name, named := range map[string]bool{"operations named as their routes are": false, "operations named as the server does": true} {
		t.Run(name, func(t *testing.T) {
			made := func() *world {
				w := newWorld()
				if named {
					w.v2.GetOperationIDAndTags, w.v3.GetOperationIDAndTags = apiopenapi.GetOperationIDAndTags, apiopenapi.GetOperationIDAndTags
				}
				return w
			}
			type part struct{ _ [64]byte }
			w, want, gone := made(), made().documents(), make(chan struct{}, 3)
			definitions := w.v2.GetDefinitions
			withPart := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
				all, unused := definitions(ref), &part{}
				runtime.AddCleanup(unused, func(gone chan struct{}) { gone <- struct{}{} }, gone)
				all["unused"] = common.OpenAPIDefinition{Schema: spec.Schema{ExtraProps: map[string]any{"part": unused}}}
				return all
			}
			w.v2.GetDefinitions, w.v3.GetDefinitions, w.v3.Definitions = withPart, withPart, nil
			Free(w.v2, w.v3)
			if got := w.documents(); got != want {
				t.Errorf("the documents are %q, want %q", got, want)
			}
			deadline := time.Now().Add(time.Minute)
			for len(gone) < 3 { // of version 2, and of each of the two services in version 3
				if runtime.GC(); time.Now().After(deadline) {
					t.Fatalf("what %d of 3 documents were made of is kept", 3-len(gone))
				}
			}
			runtime.KeepAlive(w)
		})
	}
}
