package stock

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fixed resolves one kind.
type fixed struct{ kind schema.GroupVersionKind }

var errOther = errors.New("another kind")

func (f fixed) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if kind != f.kind {
		return nil, errOther
	}
	return spec.StringProperty(), nil
}

func TestSchemasAreMadeWhenTheFirstPolicyAsksAndNotAgain(t *testing.T) {
	deployment, made := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, 0
	schemas := late(func() resolver.SchemaResolver {
		made++
		return fixed{deployment}
	})
	if made > 0 {
		t.Error("they are made, and nobody has asked")
	}
	for range 2 {
		if found, err := schemas.ResolveSchema(deployment); err != nil || found == nil {
			t.Errorf("a kind that there is: %v, %v", found, err)
		}
	}
	if _, err := schemas.ResolveSchema(schema.GroupVersionKind{Kind: "Other"}); !errors.Is(err, errOther) {
		t.Errorf("a kind that there is not: %v", err)
	}
	if made != 1 {
		t.Errorf("they were made %d times, want once", made)
	}
}
