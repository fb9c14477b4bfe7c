package specs

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emicklei/go-restful/v3"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	openapiv3 "k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
)

const (
	// pathV3 lists the documents of version 3, of which there is one for each group and version, below it.
	pathV3 = "/openapi/v3"
	// kept is for how long a document is kept for the next one who asks for it.
	kept = time.Minute
)

// Install serves the OpenAPI documents of what a server has installed. The server itself would make all of them when it starts, and hold what they are made
// of, which takes some 40 MiB for what clients ask for once and then remember. Here a document is made for who asks, and forgotten soon after.
func Install(server *genericapiserver.GenericAPIServer, v2 *common.Config, v3 *common.OpenAPIV3Config) error {
	register(server.Handler.NonGoRestfulMux, server.Handler.GoRestfulContainer, v2, v3)
	return server.AddPostStartHook("forget-openapi-definitions", func(genericapiserver.PostStartHookContext) error {
		v3.Definitions = nil // all servers have been prepared by now, and what is made from here on is made of its own
		return nil
	})
}

// InstallCustom serves the OpenAPI documents of the server of custom resources: those of definitions, and in version 3 those of what they define.
// Version 2 stays with the stock server, which makes its one document for who asks. To be called before the server is prepared, whose configuration
// leaves documents out.
func InstallCustom(server *genericapiserver.GenericAPIServer, definitions listers.CustomResourceDefinitionLister, v2 *common.Config, v3 *common.OpenAPIV3Config) {
	paths, services, config := server.Handler.NonGoRestfulMux, server.Handler.GoRestfulContainer, *v2
	// With these two the stock server follows definitions for version 2, and for lack of the third not for version 3.
	server.OpenAPIVersionedService, server.StaticOpenAPISpec = routes.OpenAPI{Config: &config}.InstallV2(services, paths)
	registerV3(paths, services, v3, newCustom(definitions))
}

func register(paths *mux.PathRecorderMux, services *restful.Container, v2 *common.Config, v3 *common.OpenAPIV3Config) {
	paths.Handle(path, &unchanging{document: &late{make: func() http.Handler {
		config, of := *v2, mux.NewPathRecorderMux("openapi-v2")
		routes.OpenAPI{Config: &config}.InstallV2(services, of)
		return of
	}}})
	registerV3(paths, services, v3, nil)
}

// registerV3 serves the documents of version 3 of what is installed, and of custom kinds where there are any.
func registerV3(paths *mux.PathRecorderMux, services *restful.Container, v3 *common.OpenAPIV3Config, custom *custom) {
	// Making a document changes the definitions that it is made of, so each has some of its own, but for those that are made at the start.
	documents := &documents{services: services, config: *v3, definitions: v3.Definitions, late: map[string]*late{}, custom: custom}
	documents.config.Definitions = nil
	paths.Handle(pathV3, http.HandlerFunc(documents.list))
	paths.HandlePrefix(pathV3+"/", http.HandlerFunc(documents.one))
}

// late is a handler that is made for who asks, and forgotten when nobody has asked for a while.
type late struct {
	make func() http.Handler

	mu     sync.Mutex
	made   http.Handler
	forget *time.Timer
}

// ServeHTTP implements http.Handler.
func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.get().ServeHTTP(w, r) }

func (l *late) get() http.Handler {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil {
		l.made = l.make()
	}
	if l.forget == nil {
		l.forget = time.AfterFunc(kept, l.drop)
	} else {
		l.forget.Reset(kept)
	}
	return l.made
}

func (l *late) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = nil
}

// unchanging answers who has the document already without making it again. The server that merges it with those of others asks so whenever it is asked.
type unchanging struct {
	document http.Handler
	tag      atomic.Pointer[string]
}

// ServeHTTP implements http.Handler.
func (u *unchanging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if tag := u.tag.Load(); tag != nil && r.Header.Get("If-None-Match") == *tag {
		w.Header().Set("Etag", *tag)
		w.Header().Set("Vary", "Accept")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	u.document.ServeHTTP(w, r)
	if tag := w.Header().Get("Etag"); tag != "" {
		u.tag.Store(&tag)
	}
}

// documents are those of version 3.
type documents struct {
	services *restful.Container
	config   common.OpenAPIV3Config
	// custom are those of custom kinds, nil where there are none.
	custom *custom

	mu sync.Mutex
	// definitions are what the documents of what is installed are made of that are listed, and listed is what clients find them by. It is small, and so kept.
	definitions map[string]common.OpenAPIDefinition
	listed      map[string]handler3.OpenAPIV3DiscoveryGroupVersion
	// late are the documents that were asked for, by group and version.
	late map[string]*late

	// making has one made at a time, whoever asks for all of them at once: each takes 20 MiB for a moment.
	making sync.Mutex
}

// list answers with the addresses of all documents.
func (d *documents) list(w http.ResponseWriter, r *http.Request) {
	listed, err := d.addresses()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Etag", strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(listed))))
	w.Header().Set("Content-Type", asJSON)
	http.ServeContent(w, r, pathV3, time.Time{}, bytes.NewReader(listed))
}

func (d *documents) addresses() ([]byte, error) {
	installed, err := d.installed()
	if err != nil {
		return nil, err
	}
	all := handler3.OpenAPIV3Discovery{Paths: maps.Clone(installed)}
	if d.custom != nil {
		for path, served := range d.custom.current() {
			if _, known := all.Paths[path]; !known {
				all.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: address(path, served.tag)}
			}
		}
	}
	listed, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("list the OpenAPI documents: %w", err)
	}
	return listed, nil
}

// installed returns the addresses of the documents of what is installed. They contain what the documents come to, so each is made once for that, one
// after another.
func (d *documents) installed() (map[string]handler3.OpenAPIV3DiscoveryGroupVersion, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listed != nil {
		return d.listed, nil
	}
	listed := map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	config, downloader := d.config, openapiv3.NewDownloader()
	config.Definitions = d.definitions
	for _, service := range d.services.RegisteredWebServices() {
		found, _, err := downloader.OpenAPIV3Root(made(service, config))
		if err != nil {
			return nil, fmt.Errorf("list the OpenAPI document of %s: %w", service.RootPath(), err)
		}
		if found != nil {
			maps.Copy(listed, found.Paths)
		}
	}
	d.listed, d.definitions = listed, nil
	return listed, nil
}

// one answers with a document.
func (d *documents) one(w http.ResponseWriter, r *http.Request) {
	root := strings.TrimPrefix(r.URL.Path, pathV3)
	document := d.of(root)
	if document == nil && d.custom != nil {
		document = d.custom.of(strings.TrimPrefix(root, "/"))
	}
	if document == nil {
		http.NotFound(w, r)
		return
	}
	document.ServeHTTP(w, r)
}

// of returns the document of what is served below a path, nil if nothing is.
func (d *documents) of(root string) http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.late[root]; known != nil {
		return known
	}
	for _, service := range d.services.RegisteredWebServices() {
		if service.RootPath() != root {
			continue
		}
		document := &late{make: func() http.Handler {
			d.making.Lock()
			defer d.making.Unlock()
			return made(service, d.config)
		}}
		d.late[root] = document
		return document
	}
	return nil
}

// made returns the document of a group and version.
func made(service *restful.WebService, config common.OpenAPIV3Config) http.Handler {
	alone, of := restful.NewContainer(), mux.NewPathRecorderMux("openapi-v3")
	alone.Add(service)
	routes.OpenAPI{V3Config: &config}.InstallV3(alone, of)
	return of
}
