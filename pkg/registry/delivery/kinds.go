// Package delivery says how the kinds of delivery are stored and shown, and records what people ask of releases.
package delivery

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/registry/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/registry/group"
)

// Group returns the group delivery.manifold.dev. Written is called before who has written an Application is answered; it may be nil.
func Group(typer runtime.ObjectTyper, written func(application runtime.Object)) group.Group {
	base := group.NewStrategy(typer)
	var logs *group.REST
	return group.Group{Version: v1alpha1.SchemeGroupVersion, Categories: []string{"manifold", "delivery"}, Kinds: []group.Kind{
		{
			Plural: "applications", Singular: "application", ShortName: "app",
			Object:   func() runtime.Object { return &v1alpha1.Application{} },
			List:     func() runtime.Object { return &v1alpha1.ApplicationList{} },
			Strategy: applicationStrategy{base},
			Status:   applicationStatusStrategy{applicationStrategy{base}},
			Columns:  applicationColumns(),
			Written:  written,
		},
		{
			Plural: "applicationrevisions", Singular: "applicationrevision", ShortName: "apprev",
			Object:   func() runtime.Object { return &v1alpha1.ApplicationRevision{} },
			List:     func() runtime.Object { return &v1alpha1.ApplicationRevisionList{} },
			Strategy: revisionStrategy{base},
			Columns:  revisionColumns(),
		},
		{
			// Before releases, whose subresource log reads them.
			Plural: "releaselogparts", Singular: "releaselogpart", ShortName: "relpart", Uncategorized: true,
			Object:   func() runtime.Object { return &v1alpha1.ReleaseLogPart{} },
			List:     func() runtime.Object { return &v1alpha1.ReleaseLogPartList{} },
			Strategy: notedStrategy[*v1alpha1.ReleaseLogPart]{base, validation.ValidateReleaseLogPart, validation.ValidateReleaseLogPartUpdate},
			Columns:  logColumns(),
			Subresources: func(parts *group.REST) map[string]rest.Storage {
				logs = parts
				return nil
			},
		},
		{
			Plural: "pluginrecords", Singular: "pluginrecord", ShortName: "plugrec", Uncategorized: true,
			Object:   func() runtime.Object { return &v1alpha1.PluginRecord{} },
			List:     func() runtime.Object { return &v1alpha1.PluginRecordList{} },
			Strategy: notedStrategy[*v1alpha1.PluginRecord]{base, validation.ValidatePluginRecord, validation.ValidatePluginRecordUpdate},
			Columns:  recordColumns(),
		},
		{
			Plural: "releases", Singular: "release", ShortName: "rel",
			Object:   func() runtime.Object { return &v1alpha1.Release{} },
			List:     func() runtime.Object { return &v1alpha1.ReleaseList{} },
			Strategy: releaseStrategy{base},
			Status:   releaseStatusStrategy{releaseStrategy{base}},
			Columns:  releaseColumns(),
			Subresources: func(releases *group.REST) map[string]rest.Storage {
				stores := requestStores(releases, base, clock.RealClock{})
				if logs != nil {
					stores["log"] = &logREST{releases: releases, parts: logs}
				}
				return stores
			},
		},
		plugins.Kind(base),
	}}
}
