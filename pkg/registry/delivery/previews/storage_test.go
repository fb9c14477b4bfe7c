package previews

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
)

// asked notes what plugins are asked.
type asked struct {
	q    *planning.Question
	fail error
}

func (a *asked) Preview(_ context.Context, q planning.Question) ([]v1alpha1.PluginPreview, error) {
	a.q = &q
	return []v1alpha1.PluginPreview{{Plugin: "toy", DeployTarget: "dev", NoChange: true}}, a.fail
}

func store(objects ...runtime.Object) cache.Indexer {
	out := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		_ = out.Add(object)
	}
	return out
}

func TestG21WhatAReleaseWouldChangeIsAsked(t *testing.T) {
	revision := func(name, application string) *v1alpha1.ApplicationRevision {
		return &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1alpha1.ApplicationRevisionSpec{Application: application}}
	}
	for name, test := range map[string]struct {
		body    v1alpha1.ApplicationPreview
		change  func(*v1alpha1.Application)
		unknown bool
		nobody  bool
		fails   error
		want    string // the revision, and the one that it is compared with
		is      func(error) bool
		says    string
	}{
		"of the newest revision":                  {want: "web-v3 web-v2"},
		"of another one":                          {body: v1alpha1.ApplicationPreview{Revision: "web-v1"}, want: "web-v1 web-v2"},
		"of the first one":                        {change: func(app *v1alpha1.Application) { app.Status.LiveRevision = "" }, want: "web-v3 "},
		"what runs is gone":                       {change: func(app *v1alpha1.Application) { app.Status.LiveRevision = "web-v0" }, want: "web-v3 "},
		"by its name":                             {body: v1alpha1.ApplicationPreview{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, want: "web-v3 web-v2"},
		"not of another one than is said":         {body: v1alpha1.ApplicationPreview{ObjectMeta: metav1.ObjectMeta{Name: "api"}}, is: apierrors.IsBadRequest, says: "but the request is about application"},
		"not of others' revisions":                {body: v1alpha1.ApplicationPreview{Revision: "api-v1"}, is: apierrors.IsNotFound},
		"not of one that is not there":            {body: v1alpha1.ApplicationPreview{Revision: "web-v9"}, is: apierrors.IsNotFound},
		"not where there is none":                 {change: func(app *v1alpha1.Application) { app.Status.LatestRevision = "" }, is: apierrors.IsConflict, says: "no revision yet"},
		"not of an application that is not there": {change: func(app *v1alpha1.Application) { app.Name = "other" }, is: apierrors.IsNotFound},
		"not before they are known":               {unknown: true, is: apierrors.IsServiceUnavailable},
		"not where no plugins run":                {nobody: true, is: apierrors.IsServiceUnavailable, says: "--plugins-dir"},
		"not while there is no place":             {fails: planning.BusyError{Why: "others first"}, is: apierrors.IsTooManyRequests, says: "others first"},
		"not if they do not answer":               {fails: errors.New("not within\n45s"), is: apierrors.IsTimeout, says: "not within 45s"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			app.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}}
			app.Status.LatestRevision, app.Status.LiveRevision = "web-v3", "web-v2"
			if test.change != nil {
				test.change(app)
			}
			a := &asked{fail: test.fails}
			r := &REST{
				Applications: listers.NewApplicationLister(store(app)), Known: func() bool { return !test.unknown }, Asker: a,
				Revisions: listers.NewApplicationRevisionLister(store(revision("web-v1", "web"), revision("web-v2", "web"), revision("web-v3", "web"), revision("api-v1", "api"))),
			}
			if test.nobody {
				r.Asker = nil
			}
			test.body.Running, test.body.Previews = "forged", []v1alpha1.PluginPreview{{Plugin: "forged"}}
			got, err := r.Create(request.WithNamespace(t.Context(), "shop"), "web", &test.body, nil, &metav1.CreateOptions{})
			if test.is != nil {
				if err == nil || !test.is(err) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			out := got.(*v1alpha1.ApplicationPreview)
			if said := out.Revision + " " + out.Running; said != test.want || len(out.Previews) != 1 || out.Previews[0].Plugin != "toy" || a.q.Revision.Name != out.Revision {
				t.Errorf("it is of %s, want %s, and says %+v", said, test.want, out.Previews)
			}
		})
	}
	t.Run("nobody is asked of an application without plugins", func(t *testing.T) {
		app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: v1alpha1.ApplicationStatus{LatestRevision: "web-v1"}}
		r := &REST{Applications: listers.NewApplicationLister(store(app)), Known: func() bool { return true }, Revisions: listers.NewApplicationRevisionLister(store(revision("web-v1", "web")))}
		got, err := r.Create(request.WithNamespace(t.Context(), "shop"), "web", &v1alpha1.ApplicationPreview{}, nil, &metav1.CreateOptions{})
		if err != nil || len(got.(*v1alpha1.ApplicationPreview).Previews) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
