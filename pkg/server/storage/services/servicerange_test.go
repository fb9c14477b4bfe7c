package services

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
)

func TestAFullRangeOfServicesIsARefusal(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"no address is left": {
			err:  apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", "web", ipallocator.ErrFull)),
			want: apierrors.IsInvalid,
		},
		"another fault stays one":      {err: apierrors.NewInternalError(errors.New("etcd is away")), want: apierrors.IsInternalError},
		"another refusal stays itself": {err: apierrors.NewConflict(api.Resource("services"), "web", ipallocator.ErrFull), want: apierrors.IsConflict},
		"a success stays one":          {want: func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refuseFullRange(tt.err, "web"); !tt.want(got) {
				t.Errorf("refuseFullRange() = %v", got)
			}
		})
	}
}
