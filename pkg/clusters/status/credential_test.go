package status

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// boundToken is one of a ServiceAccount of the system namespace that ends with a Secret.
func boundToken(account, secret string, issued time.Time, life time.Duration) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:manifold-system:%s","iat":%d,"exp":%d,"kubernetes.io":{"secret":{"name":%q,"uid":"1"}}}`,
		account, issued.Unix(), issued.Add(life).Unix(), secret)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

func TestCredentialCondition(t *testing.T) {
	good := boundToken("syncer", "syncer-x", noon, time.Hour)
	for name, test := range map[string]struct {
		token    string
		rejected bool
		renewal  error
		after    time.Duration
		status   metav1.ConditionStatus
		reason   string
		says     string
	}{
		"a bound token":                        {token: good, status: "True", reason: "RenewsItself", says: "renewed automatically"},
		"one whose renewal has failed once":    {token: good, renewal: errors.New("no"), after: 31 * time.Minute, status: "True", reason: "RenewsItself", says: "renewed automatically"},
		"one whose renewal fails near the end": {token: good, renewal: errors.New("no"), after: 50 * time.Minute, status: "False", reason: "RenewalFails", says: "cannot be renewed: no; run"},
		"what a cluster says of it is one line": {
			token: good, renewal: errors.New("a\x1b[2J\nb"), after: 50 * time.Minute, status: "False", reason: "RenewalFails", says: "cannot be renewed: a",
		},
		"one that has expired":            {token: good, rejected: true, after: time.Hour, status: "False", reason: "Expired", says: "rotate east"},
		"one that the cluster rejects":    {token: good, rejected: true, status: "False", reason: "Rejected", says: "join east"},
		"a client certificate":            {status: "True", reason: "NotRenewed", says: "client certificate"},
		"a certificate that is rejected":  {rejected: true, status: "False", reason: "Rejected", says: "join east"},
		"a token of another kind":         {token: "opaque", status: "True", reason: "NotRenewed", says: "does not belong to a ServiceAccount"},
		"one of a version before this":    {token: "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:manifold-system:syncer"}`)) + ".c2ln", status: "True", reason: "NotRenewed", says: "never expires, like those of earlier versions"},
		"one that ends with nothing else": {token: boundToken("syncer", "", noon, time.Hour), status: "True", reason: "NotRenewed", says: "not bound to a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Credential("east", test.token, test.rejected, test.renewal, noon.Add(test.after))
			if got.Status != test.status || got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("got %+v, want %s %s %q", got, test.status, test.reason, test.says)
			}
			if strings.ContainsAny(got.Message, "\n\x1b") {
				t.Errorf("the message %q is not of one line", got.Message)
			}
		})
	}
}
