package framework

import (
	"context"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IdentityOf returns the identity of a logical cluster, which is in every mark that it leaves.
func IdentityOf(t *testing.T, e *Environment) string {
	t.Helper()
	ns, err := e.Logical.Kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(ns.UID)
}

// StartOwn starts a logical cluster without clusters for one test.
func StartOwn(t *testing.T, options Options) *Environment {
	t.Helper()
	e, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		if !t.Failed() {
			_ = os.RemoveAll(e.Dir)
		}
	})
	return e
}

// AfterTest is for cleaning up: the test's own context has ended by then.
func AfterTest() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 2*Deadline)
}
