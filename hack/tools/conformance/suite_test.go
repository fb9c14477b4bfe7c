// Package conformance is Kubernetes' own end-to-end suite, built with one thing that it lacks: a bound on every spec.
//
// Upstream's specs wait up to 15 minutes for what a real cluster surely does. Where pods only pretend to run, some of that never
// comes, and a run would take a day. Specs, framework and their flags are upstream's; of its sigs, only those that we compare on are
// linked.
package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	conformancetestdata "k8s.io/kubernetes/test/conformance/testdata"
	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	e2etestingmanifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	testfixtures "k8s.io/kubernetes/test/fixtures"

	// The specs. Those of common come with package e2e.
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/auth"
	_ "k8s.io/kubernetes/test/e2e/instrumentation"
	_ "k8s.io/kubernetes/test/e2e/kubectl"
	_ "k8s.io/kubernetes/test/e2e/network"
	_ "k8s.io/kubernetes/test/e2e/scheduling"

	// What the framework leaves to be chosen by the suite.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/utils/ktesting/format"
)

var resultsURL = flag.String("results-url", "", "where to post the result of each spec that was run, as JSON")

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	specTimeout := flag.Duration("spec-timeout", 0, "how long a spec may take, its preparation included; 0 is as long as it likes")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unknown arguments: %q\n", flag.Args())
		os.Exit(1)
	}
	testfiles.AddFileSource(e2etestingmanifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(testfixtures.GetTestFixturesFS())
	testfiles.AddFileSource(conformancetestdata.GetConformanceTestdataFS())
	if *specTimeout > 0 {
		ginkgo.AddTreeConstructionNodeArgsTransformer(bound(*specTimeout))
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

// TestE2E is the name that the upstream suite has. What reports is registered here and not before, as reading the flags drops everything
// of the suite but its specs.
func TestE2E(t *testing.T) {
	if *resultsURL != "" {
		reportTo(*resultsURL)
	}
	e2e.RunE2ETests(t)
}

// bound gives specs a timeout. Only a body that takes a context can be told to end, and a spec that has a timeout keeps it.
func bound(timeout time.Duration) ginkgo.NodeArgsTransformer {
	return func(nodeType types.NodeType, _ ginkgo.Offset, text string, args []any) (string, []any, []error) {
		if nodeType.Is(types.NodeTypeIt) && boundable(args) {
			args = append(args, ginkgo.SpecTimeout(timeout))
		}
		return text, args, nil
	}
}

func boundable(args []any) bool {
	takesContext := false
	for _, arg := range args {
		if _, ok := arg.(ginkgo.SpecTimeout); ok {
			return false
		}
		if t := reflect.TypeOf(arg); t != nil && t.Kind() == reflect.Func && t.NumIn() == 1 {
			takesContext = t.In(0).Implements(reflect.TypeFor[context.Context]())
		}
	}
	return takesContext
}
