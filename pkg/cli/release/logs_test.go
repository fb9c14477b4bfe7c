package release

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
)

func TestLogsAskForTheirPart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.String())
	}))
	defer server.Close()
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/apis/delivery.manifold.dev/v1alpha1/namespaces/shop/releases/web-x2f/log"
	for name, test := range map[string]struct {
		options LogsOptions
		want    string
	}{
		"all of it":              {want: path},
		"a target of a stage":    {options: LogsOptions{Stage: "rollout", Target: "eu"}, want: path + "?stage=rollout&target=eu"},
		"what is to come":        {options: LogsOptions{Follow: true}, want: path + "?follow=true"},
		"a name that is no name": {options: LogsOptions{Stage: "a&follow=true"}, want: path + "?stage=a%26follow%3Dtrue"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := test.options
			o.IOStreams, o.subject = streams, subject{Namespace: "shop", Name: "web-x2f", client: client}
			if err := o.Run(t.Context()); err != nil || strings.TrimSpace(out.String()) != test.want {
				t.Errorf("got %q, %v; want %q", out.String(), err, test.want)
			}
		})
	}
}
