package specs

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/spec3"
)

// mostKept is how many documents of custom kinds are kept at once. Each has all kinds of a group and version, which may come to tens of MiB.
const mostKept = 8

// custom are the documents of version 3 of custom kinds, one for each group and version.
//
// The stock server makes a document anew, and all of it, for each definition that comes, changes or goes: hundreds of definitions of one group that come
// at once are described tens of thousands of times. Here a document is made for who asks, and what tells a changed one comes from the
// definitions and not from the document, so that it can be listed without being made.
type custom struct {
	definitions listers.CustomResourceDefinitionLister
	build       func(*apiextensionsv1.CustomResourceDefinition, string, builder.Options) (*spec3.OpenAPI, error)

	mu sync.Mutex
	// prints are those of the definitions that there are, by name.
	prints map[string]printed
	// kept are the documents that were asked for last, by path.
	kept map[string]*keptDocument

	// making has one made at a time, whoever asks for many of them at once.
	making sync.Mutex
}

// printed are the prints of a definition as it is stored, one for each version that it serves.
type printed struct {
	resourceVersion string
	versions        map[string]fingerprint
}

// fingerprint is different where documents are.
type fingerprint [sha256.Size]byte

// groupVersion is what a document tells of.
type groupVersion struct {
	path, version string
	// definitions are those of its kinds, by name, and tag is different where their document is.
	definitions []*apiextensionsv1.CustomResourceDefinition
	tag         string
}

// keptDocument is the document of a groupVersion.
type keptDocument struct {
	tag string
	// made makes it once.
	made   func() (*forms, error)
	asked  time.Time
	forget *time.Timer
}

func newCustom(definitions listers.CustomResourceDefinitionLister) *custom {
	return &custom{definitions: definitions, build: builder.BuildOpenAPIV3, prints: map[string]printed{}, kept: map[string]*keptDocument{}}
}

// current returns what there are documents of, by path, and forgets the documents that are none any more.
func (c *custom) current() map[string]groupVersion {
	definitions, err := c.definitions.List(labels.Everything())
	if err != nil { // never, for it is a cache
		klog.ErrorS(err, "List the definitions of custom resources for their OpenAPI documents")
	}
	slices.SortFunc(definitions, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	c.mu.Lock()
	defer c.mu.Unlock()
	all, found := make(map[string]printed, len(definitions)), map[string]groupVersion{}
	prints := map[string][]byte{}
	for _, crd := range definitions {
		if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
			continue
		}
		known, ok := c.prints[crd.Name]
		if !ok || known.resourceVersion != crd.ResourceVersion {
			known = printed{crd.ResourceVersion, printsOf(crd)}
		}
		all[crd.Name] = known
		for version, of := range known.versions {
			path := "apis/" + crd.Spec.Group + "/" + version
			served := found[path]
			served.path, served.version, served.definitions = path, version, append(served.definitions, crd)
			found[path], prints[path] = served, append(prints[path], of[:]...)
		}
	}
	c.prints = all
	for path, served := range found {
		served.tag = fmt.Sprintf("%X", sha256.Sum256(prints[path]))
		found[path] = served
	}
	for path, document := range c.kept {
		if found[path].tag != document.tag {
			c.forget(path, document)
		}
	}
	return found
}

// printsOf returns a print of each version that a definition serves. What is printed is all that builder.BuildOpenAPIV3 reads, and the build of this
// program, since another one may say the same in other words.
func printsOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]fingerprint {
	prints := map[string]fingerprint{}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		names, subresources := crd.Status.AcceptedNames, v.Subresources
		read, err := json.Marshal([]any{
			version.Get().GitVersion, crd.Spec.Group, v.Name, crd.Spec.Scope, names.Plural, names.Kind, names.ListKind, v.Schema, v.SelectableFields,
			subresources != nil && subresources.Status != nil, subresources != nil && subresources.Scale != nil,
		})
		if err != nil { // never, for it has come as JSON
			klog.ErrorS(err, "Encode the schema of a definition for its OpenAPI document", "definition", crd.Name, "version", v.Name)
			read = []byte(crd.ResourceVersion)
		}
		prints[v.Name] = sha256.Sum256(read)
	}
	return prints
}

// of returns the document of a path, nil if there is none.
func (c *custom) of(path string) http.Handler {
	served, ok := c.current()[path]
	if !ok {
		return nil
	}
	return &tagged{path: path, tag: served.tag, document: c.keep(served).made}
}

// keep returns the document of what is served, which is kept for the next one who asks.
func (c *custom) keep(served groupVersion) *keptDocument {
	c.mu.Lock()
	defer c.mu.Unlock()
	document := c.kept[served.path]
	if document != nil && document.tag == served.tag {
		document.asked = time.Now()
		document.forget.Reset(kept)
		return document
	}
	if document != nil {
		c.forget(served.path, document)
	}
	document = &keptDocument{tag: served.tag, asked: time.Now(), made: sync.OnceValues(func() (*forms, error) {
		c.making.Lock()
		defer c.making.Unlock()
		return c.made(served)
	})}
	document.forget = time.AfterFunc(kept, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forget(served.path, document)
	})
	c.kept[served.path] = document
	if len(c.kept) > mostKept {
		oldest := served.path
		for path, document := range c.kept {
			if document.asked.Before(c.kept[oldest].asked) {
				oldest = path
			}
		}
		c.forget(oldest, c.kept[oldest])
	}
	return document
}

// forget lets a document go. The caller holds mu.
func (c *custom) forget(path string, document *keptDocument) {
	document.forget.Stop()
	if c.kept[path] == document {
		delete(c.kept, path)
	}
}

// made returns the document of all kinds of a group and version. A definition that it cannot be made of is left out, as the stock server does.
func (c *custom) made(of groupVersion) (*forms, error) {
	kinds := make([]*spec3.OpenAPI, 0, len(of.definitions))
	for _, crd := range of.definitions {
		served := *crd
		served.Spec.Names = crd.Status.AcceptedNames // which no two definitions have in common, and requests come by
		kind, err := c.build(&served, of.version, builder.Options{IncludeSelectableFields: true})
		if err != nil {
			klog.ErrorS(err, "Describe custom resources in an OpenAPI document", "definition", crd.Name, "version", of.version)
			continue
		}
		kinds = append(kinds, kind)
	}
	all, err := builder.MergeSpecsV3(kinds...)
	if err != nil {
		return nil, fmt.Errorf("merge the OpenAPI documents of the kinds of %s: %w", of.path, err)
	}
	document, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document of %s: %w", of.path, err)
	}
	return newForms(document), nil
}
