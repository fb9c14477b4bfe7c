package bearer

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func tokenOf(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
}

func bound(account, secret string, issued time.Time, life time.Duration) string {
	return tokenOf(fmt.Sprintf(`{"sub":"system:serviceaccount:manifold-system:%s","iat":%d,"exp":%d,"kubernetes.io":{"secret":{"name":%q,"uid":"1"}}}`,
		account, issued.Unix(), issued.Add(life).Unix(), secret))
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		token   string
		want    Claims
		problem string
	}{
		"a token that is bound to a Secret": {
			token: bound("syncer", "syncer-x", noon, time.Hour),
			want: Claims{
				Namespace: "manifold-system", Account: "syncer", Secret: "syncer-x", SecretUID: "1",
				Issued: time.Unix(noon.Unix(), 0), Expires: time.Unix(noon.Add(time.Hour).Unix(), 0),
			},
		},
		"one of a Secret of its own never ends": {
			token: tokenOf(`{"sub":"system:serviceaccount:manifold-system:syncer","kubernetes.io/serviceaccount/secret.name":"syncer"}`),
			want:  Claims{Namespace: "manifold-system", Account: "syncer"},
		},
		"one that is bound to a pod": {
			token: tokenOf(`{"sub":"system:serviceaccount:shop:web","kubernetes.io":{"pod":{"name":"web-1","uid":"2"}}}`),
			want:  Claims{Namespace: "shop", Account: "web", Pod: "web-1", PodUID: "2"},
		},
		"what is no token":                {token: "opaque", problem: "not a JSON web token"},
		"a token without claims":          {token: "a..c", problem: "not JSON"},
		"claims that are not encoded":     {token: "a.!.c", problem: "base64"},
		"a person's token":                {token: tokenOf(`{"sub":"jane"}`), problem: "not a ServiceAccount's"},
		"a token longer than any is read": {token: "a." + strings.Repeat("e", longest) + ".c", problem: "not a JSON web token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.token)
			if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Fatalf("error %v, want %q", err, test.problem)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAudiences(t *testing.T) {
	for name, test := range map[string]struct {
		token string
		want  []string
	}{
		"one, as a text":           {tokenOf(`{"aud":"a"}`), []string{"a"}},
		"one, in a list":           {tokenOf(`{"aud":["a"]}`), []string{"a"}},
		"several":                  {tokenOf(`{"aud":["a","b"]}`), []string{"a", "b"}},
		"none":                     {tokenOf(`{"sub":"jane"}`), nil},
		"what is no list":          {tokenOf(`{"aud":{"a":1}}`), nil},
		"what is no token":         {"opaque", nil},
		"a token that is too long": {"a." + strings.Repeat("e", longest) + ".c", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Audiences(test.token); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestATokenIsRenewedWellBeforeItEnds(t *testing.T) {
	for name, test := range map[string]struct {
		life            time.Duration
		earliest, last  time.Duration
		again, lateFrom time.Duration
	}{
		"of a week": {
			life: 168 * time.Hour, earliest: 84 * time.Hour, last: 100*time.Hour + 48*time.Minute, again: 5 * time.Minute, lateFrom: 126 * time.Hour,
		},
		"of the shortest life that the API has": {
			life: 10 * time.Minute, earliest: 5 * time.Minute, last: 6 * time.Minute, again: 15 * time.Second, lateFrom: 7*time.Minute + 30*time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(bound("syncer", "syncer-x", noon, test.life))
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Due(0).Sub(noon); got != test.earliest {
				t.Errorf("renewed after %s at the earliest, want %s", got, test.earliest)
			}
			if got := c.Due(1).Sub(noon); got != test.last {
				t.Errorf("renewed after %s at the latest, want %s", got, test.last)
			}
			if got := c.Again(); got != test.again {
				t.Errorf("tried again after %s, want %s", got, test.again)
			}
			if at := noon.Add(test.lateFrom); c.Late(at) || !c.Late(at.Add(time.Second)) {
				t.Errorf("not late from %s on", test.lateFrom)
			}
			if end := noon.Add(test.life); c.Expired(end.Add(-time.Second)) || !c.Expired(end) {
				t.Errorf("not expired from %s on", test.life)
			}
		})
	}
}

func TestOnlyATokenOfTheSameIdentityFollows(t *testing.T) {
	present := bound("syncer", "syncer-x", noon, time.Hour)
	later := noon.Add(30 * time.Minute)
	for name, test := range map[string]struct {
		next string
		want string
	}{
		"the same, later":                         {next: bound("syncer", "syncer-x", later, time.Hour)},
		"the same, capped, yet later":             {next: bound("syncer", "syncer-x", later, 40*time.Minute)},
		"another account":                         {next: bound("admin", "syncer-x", later, time.Hour), want: "for ServiceAccount manifold-system/admin"},
		"another Secret":                          {next: bound("syncer", "mine", later, time.Hour), want: "is not bound to Secret manifold-system/syncer-x"},
		"one that ends before the present one":    {next: bound("syncer", "syncer-x", later, time.Minute), want: "does not expire later"},
		"one that was made for ever by a mistake": {next: tokenOf(`{"sub":"system:serviceaccount:manifold-system:syncer","kubernetes.io":{"secret":{"name":"syncer-x","uid":"1"}}}`), want: "does not expire later"},
	} {
		t.Run(name, func(t *testing.T) {
			was, err := Parse(present)
			if err != nil {
				t.Fatal(err)
			}
			next, err := Parse(test.next)
			if err != nil {
				t.Fatal(err)
			}
			err = was.Follows(next)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

type record struct{ seen []string }

func (r *record) RoundTrip(request *http.Request) (*http.Response, error) {
	r.seen = append(r.seen, request.Header.Get("Authorization"))
	return &http.Response{StatusCode: http.StatusOK}, nil
}

func TestRequestsCarryThePresentTokenAndNoOther(t *testing.T) {
	source, r := NewSource("one"), &record{}
	over := source.Over(r)
	send := func(request *http.Request) {
		t.Helper()
		if _, err := over.RoundTrip(request); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://east", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Basic of-a-user")
	send(request)
	_, changed := source.Token()
	source.Set("one")
	select {
	case <-changed:
		t.Error("the same token counts as another one")
	default:
	}
	source.Set("two")
	<-changed
	send(request)
	send(request.WithContext(Trying(t.Context(), "three")))
	source.Set("")
	send(request)
	if want := []string{"Bearer one", "Bearer two", "Bearer three", ""}; !reflect.DeepEqual(r.seen, want) {
		t.Errorf("sent %q, want %q", r.seen, want)
	}
	if got := request.Header.Get("Authorization"); got != "Basic of-a-user" {
		t.Errorf("the caller's request was changed to %q", got)
	}
}

func kubeconfig(token, server string) []byte {
	return []byte(fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: east
clusters: [{name: east, cluster: {server: %q}}]
users: [{name: syncer, user: {token: %q}}]
contexts: [{name: east, context: {cluster: east, user: syncer}}]
`, server, token))
}

func TestAKubeconfigApartFromItsToken(t *testing.T) {
	token, one, err := Split(kubeconfig("a", "https://east"))
	if err != nil || token != "a" || strings.Contains(string(one), "token") {
		t.Fatalf("token %q, rest %s, %v", token, one, err)
	}
	if _, two, err := Split(kubeconfig("b", "https://east")); err != nil || string(two) != string(one) {
		t.Errorf("with another token the rest is %s, %v, want %s", two, err, one)
	}
	if _, other, err := Split(kubeconfig("a", "https://elsewhere")); err != nil || string(other) == string(one) {
		t.Errorf("with another address the rest is the same, %v", err)
	}
	next, err := Replace(kubeconfig("a", "https://east"), "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if token, rest, err := Split(next); err != nil || token != "b" || string(rest) != string(one) {
		t.Errorf("replaced, it has the token %q and the rest %s, %v", token, rest, err)
	}
	if _, err := Replace(kubeconfig("c", "https://east"), "a", "b"); err == nil || !strings.Contains(err.Error(), "another token") {
		t.Errorf("what somebody else stored was replaced: %v", err)
	}
	for _, bad := range []string{"{", "kind: Config", "current-context: x\ncontexts: [{name: x, context: {user: nobody}}]"} {
		if _, _, err := Split([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
