package pipelines

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/delivery/weave/versions"
)

// found is an object of the logical cluster that is part of a pipeline.
type found struct {
	kind schema.GroupKind
	object
}

// look is one look at a pipeline.
type look struct {
	*Controller
	ctx      context.Context
	pipeline *weave.Pipeline
	// authors are who has named its targets.
	authors []weave.Author
	// parts are the objects of the logical cluster that are part of it, by namespace.
	parts map[string]parts
	// patient says that what is about to be known is waited for. waits says that something is, holds that it has not been told before, and again that
	// something is to be looked at again later.
	patient, waits, holds, again bool
	// errs are what went wrong with reading, which is tried again.
	errs []error
}

// parts are the objects of a namespace of the logical cluster.
type parts struct {
	found []found
	// problem says what of them cannot be read, "" if all of them can, and undefined that the kind of the app is not known.
	problem, undefined string
	// waits says that it is not known yet whether these are all.
	waits bool
}

// in returns the objects of a namespace that are part of the pipeline.
func (l *look) in(namespace string) parts {
	if known, has := l.parts[namespace]; has {
		return known
	}
	out := parts{}
	l.builtIn(namespace, &out)
	l.custom(namespace, &out)
	l.parts[namespace] = out
	return out
}

// builtIn adds what is of the kinds that are always there.
func (l *look) builtIn(namespace string, out *parts) {
	app := l.pipeline.Spec.AppRef
	for kind, informer := range l.workloads {
		objects := caches.Indexed[object](informer.GetIndexer(), indexPipeline, namespace+"/"+l.pipeline.Name)
		if app != nil && versions.KindOf(app) == kind {
			if named := caches.Named[object](informer.GetIndexer(), namespace+"/"+app.Name); named != nil && !slices.Contains(objects, named) {
				objects = append(objects, named)
			}
		}
		for _, object := range objects {
			out.found = append(out.found, found{kind, object})
		}
	}
}

// object is one of the logical cluster, of its type, or unstructured of a custom kind.
type object interface {
	runtime.Object
	metav1.Object
}

// custom adds what is of the kinds that somebody has to define.
func (l *look) custom(namespace string, out *parts) {
	var named []reference
	l.Kinds.Indexed(indexPipeline, namespace+"/"+l.pipeline.Name, func(kind schema.GroupKind, o *metav1.PartialObjectMetadata) {
		if _, counts := versions.Custom[kind]; counts {
			named = append(named, reference{kind, o})
		}
	})
	app := l.pipeline.Spec.AppRef
	for kind := range versions.Custom {
		isApp := app != nil && versions.KindOf(app) == kind
		switch {
		case !l.defined(kind):
			if isApp {
				out.undefined = fmt.Sprintf("kind %s is not defined in the logical cluster", kind)
			}
			continue
		case !l.Kinds.Known(kind):
			out.waits = true
			continue
		case !isApp:
			continue
		}
		if o, _ := l.Kinds.Get(kind, namespace, app.Name); o != nil && !slices.ContainsFunc(named, func(r reference) bool { return r.kind == kind && r.object.Name == o.Name }) {
			named = append(named, reference{kind, o})
		}
	}
	for _, r := range named {
		object, err := l.whole(r)
		switch {
		case err != nil:
			l.errs = append(l.errs, err)
			out.problem = delivery.Said(err.Error())
		case object != nil:
			out.found = append(out.found, found{r.kind, object})
		}
	}
	if app == nil {
		return
	}
	if _, counts := weave.WorkloadOf(*app); !counts {
		out.undefined = delivery.Said(fmt.Sprintf("spec.appRef: pipelines know no versions of objects of kind %s", versions.KindOf(app)))
	}
}

// reference is an object of a custom kind by its metadata.
type reference struct {
	kind   schema.GroupKind
	object *metav1.PartialObjectMetadata
}

// defined reports whether a custom kind is defined and served.
func (l *look) defined(kind schema.GroupKind) bool {
	obj, there, err := l.definitions.GetStore().GetByKey(versions.Custom[kind].String())
	if err != nil || !there {
		return false
	}
	crd, is := obj.(*apiextensionsv1.CustomResourceDefinition)
	return is && slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
}

// readKey names what was read.
type readKey struct {
	kind schema.GroupKind
	cache.ObjectName
}

// whole reads what matters of an object, unless that is known. It is nil if the object is gone.
func (l *look) whole(of reference) (*unstructured.Unstructured, error) {
	name := readKey{of.kind, cache.MetaObjectToName(of.object)}
	if known, has := l.read.Get(name); has {
		if o := known.(*unstructured.Unstructured); o.GetUID() == of.object.UID && o.GetResourceVersion() == of.object.ResourceVersion {
			return o, nil
		}
	}
	resource, defined := l.Kinds.Resource(of.kind)
	if !defined {
		return nil, nil
	}
	o, err := l.Dynamic.Resource(resource).Namespace(name.Namespace).Get(l.ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", of.kind.Kind, name.ObjectName, err)
	}
	out := versions.Trim(o)
	out.SetAnnotations(o.GetAnnotations()) // decisions, and what clusters report
	out.SetLabels(o.GetLabels())
	out.SetOwnerReferences(o.GetOwnerReferences())
	l.read.Add(name, out)
	return out, nil
}

// failed joins what went wrong.
func (l *look) failed() error { return errors.Join(l.errs...) }
