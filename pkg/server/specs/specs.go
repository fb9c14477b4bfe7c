// Package specs keeps the server from holding what OpenAPI documents are made of: that of built-in kinds, which nobody asks for any more once clients have
// the documents, and the schemas of definitions of custom resources that are gone.
//
// The OpenAPI document of version 2 is one for all kinds. The server makes it when it is asked for, and keeps it until it is asked again,
// in JSON and as protobuf, with all that it was made from. After hundreds of definitions have come and gone that is a hundred MiB.
package specs

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

const (
	path = "/openapi/v2"
	// quiet is how long no definition may go before the document is made anew, since making it takes a second.
	quiet = 10 * time.Second
)

// The forms of the document. Each is kept apart from the other.
const (
	asJSON     = "application/json"
	asProtobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// Document knows in which forms the server keeps the document.
type Document struct {
	mu sync.Mutex
	// api has answered who asked, and forms is what was asked for.
	api   http.Handler
	forms []string
}

// Wrap returns a handler that notes who asks for the document. It stands behind authorization.
func (d *Document) Wrap(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			d.note(api, r.Header.Values("Accept"))
		}
		api.ServeHTTP(w, r)
	})
}

func (d *Document) note(api http.Handler, accept []string) {
	form := asJSON
	if strings.Contains(strings.Join(accept, ","), "protobuf") {
		form = asProtobuf
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.api = api
	if !slices.Contains(d.forms, form) {
		d.forms = append(d.forms, form)
	}
}

// Follow has the document made anew after definitions have gone, until ctx ends. What nobody has asked for is not made.
func (d *Document) Follow(ctx context.Context, definitions cache.SharedInformer) {
	gone := make(chan struct{}, 1)
	registration, err := definitions.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {
		select {
		case gone <- struct{}{}:
		default: // it is known already
		}
	}})
	if err != nil {
		return // the informer has stopped, and the server with it
	}
	defer func() { _ = definitions.RemoveEventHandler(registration) }() // it ends with the server in any case
	timer := time.NewTimer(quiet)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-gone:
			timer.Reset(quiet)
		case <-timer.C:
			d.renew(ctx)
		}
	}
}

// renew asks for the document as it was asked for before.
func (d *Document) renew(ctx context.Context) {
	d.mu.Lock()
	api, forms := d.api, slices.Clone(d.forms)
	d.mu.Unlock()
	for _, form := range forms {
		r, err := http.NewRequestWithContext(ctx, http.MethodHead, path, nil)
		if err != nil { // never, for the path is a constant
			continue
		}
		r.Header.Set("Accept", form)
		api.ServeHTTP(discard{}, r)
	}
}

// discard is an answer that nobody reads.
type discard http.Header

func (d discard) Header() http.Header         { return http.Header(d) }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
