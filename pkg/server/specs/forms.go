package specs

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/kube-openapi/pkg/handler3"
)

// The forms of a document of version 3, of those below application/.
const (
	formJSON     = "json"
	formProtobuf = "com.github.proto-openapi.spec.v3.v1.0+protobuf"
	// formProtobufOld is how older clients write it.
	formProtobufOld = "com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// address is where clients find a document of version 3, and how they know whether they have it already.
func address(path, tag string) string {
	return (&url.URL{Path: pathV3 + "/" + path, RawQuery: url.Values{"hash": {tag}}.Encode()}).String()
}

// tagged answers with a document of version 3 that is known by a tag, as the stock server does (handler3.OpenAPIService.HandleGroupVersion), which
// has the tag from the document. Who has the document already needs none to be made.
type tagged struct {
	path, tag string
	document  func() (*forms, error)
}

// ServeHTTP implements http.Handler.
func (t *tagged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	form := accepted(r.Header.Get("Accept"))
	if form == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	tag, hash := strconv.Quote(t.tag), r.URL.Query().Get("hash")
	if hash != "" && hash != t.tag {
		w.Header().Set("Etag", tag)
		http.Redirect(w, r, address(t.path, t.tag), http.StatusMovedPermanently)
		return
	}
	var body []byte
	if r.Header.Get("If-None-Match") != tag {
		var err error
		if body, err = t.in(form); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Etag", tag)
	w.Header().Set("Content-Type", "application/"+form)
	if hash != "" { // which another document would not have
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).Format(time.RFC1123))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// in returns the document in a form.
func (t *tagged) in(form string) ([]byte, error) {
	document, err := t.document()
	switch {
	case err != nil:
		return nil, err
	case form == formJSON:
		return document.json, nil
	}
	return document.protobuf()
}

// forms are those of a document.
type forms struct {
	json     []byte
	protobuf func() ([]byte, error)
}

func newForms(json []byte) *forms {
	return &forms{json: json, protobuf: sync.OnceValues(func() ([]byte, error) {
		document, err := handler3.ToV3ProtoBinary(json)
		if err != nil {
			return nil, fmt.Errorf("encode an OpenAPI document as protobuf: %w", err)
		}
		return document, nil
	})}
}

// accepted returns the form that a header asks for, "" for none that there is.
func accepted(header string) string {
	if header == "" {
		return formJSON
	}
	for _, clause := range goautoneg.ParseAccept(header) {
		if clause.Type != "application" && clause.Type != "*" {
			continue
		}
		switch clause.SubType {
		case formJSON, "*":
			return formJSON
		case formProtobuf, formProtobufOld:
			return formProtobuf
		}
	}
	return ""
}
