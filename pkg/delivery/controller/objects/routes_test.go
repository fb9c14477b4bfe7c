package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// Whoever keeps what is there of applications does so by the informers that all of the process share.
func TestSeveralStoresShareInformers(t *testing.T) {
	kube := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
	for range 2 {
		if _, err := NewStore(kube, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeliveryAloneSaysWhatClustersHoldOtherwiseWhereTheServiceAccountMayWrite(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", ResourceVersion: "7"}}
	const routes = `{"east":{"/spec/selector/a":{"is":"b"}}}`
	forbidden := apierrors.NewForbidden(corev1.Resource("services"), "web", errors.New("deployer cannot patch"))
	for name, test := range map[string]struct {
		account string
		answer  error // to the ServiceAccount
		want    []string
		refused bool
	}{
		"without a ServiceAccount": {want: []string{`"" writes it`}},
		"one that may":             {account: "deployer", want: []string{`"deployer" tries`, `"" writes it`}},
		"one that may not":         {account: "deployer", answer: forbidden, want: []string{`"deployer" tries`}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			store, err := NewStore(informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			writer := NewWriter(store, func(account Account) (dynamic.Interface, error) {
				client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
				client.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
					patch := action.(clienttesting.PatchActionImpl)
					if len(patch.PatchOptions.DryRun) > 0 {
						got = append(got, fmt.Sprintf("%q tries", account.ServiceAccount))
						return true, &unstructured.Unstructured{}, test.answer
					}
					got = append(got, fmt.Sprintf("%q writes it", account.ServiceAccount))
					if !strings.Contains(string(patch.Patch), `"resourceVersion":"7"`) {
						t.Errorf("what somebody else has written meanwhile is overwritten: %s", patch.Patch)
					}
					return true, &unstructured.Unstructured{}, nil
				})
				return client, nil
			}, nil)
			err = writer.Route(t.Context(), Account{Namespace: "shop", ServiceAccount: test.account}, corev1.SchemeGroupVersion.WithKind("Service"), service, routes)
			if refusal := new(RefusedError); errors.As(err, &refusal) != test.refused || !test.refused && err != nil {
				t.Errorf("error %v", err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Who selects the objects of a namespace takes those that are its users' own. What is made beside them is not to replace what somebody has made.
func TestWhatIsMadeBesideSelectedObjectsIsNotTakenFromOthers(t *testing.T) {
	theirs := &unstructured.Unstructured{}
	theirs.SetName("web")
	owner := Owner{Name: "web", UID: "app", Selected: true}
	for variant, taken := range map[string]bool{v1alpha1.VariantPrimary: true, v1alpha1.VariantCanary: false, v1alpha1.AllVariants: false} {
		if err := mayTake(theirs, owner.of(wanted.Object{Variant: variant})); (err == nil) != taken {
			t.Errorf("an object of variant %s: %v, want it taken: %t", variant, err, taken)
		}
	}
}
