// Package bearer is about the tokens that clusters are reached with: what they say of themselves, when they are to be renewed, and how a
// connection goes on with the next one.
package bearer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// longest is the length of the longest token that is read. A cluster makes them, and they go into a header of every request.
const longest = 16 << 10

// Claims are what a token of a ServiceAccount says of itself. Nobody has checked its signature: that is for the cluster that made it, which it
// is about alone.
type Claims struct {
	// Namespace and Account name the ServiceAccount.
	Namespace, Account string
	// Secret is the Secret that the token ends with; empty if it is not bound to one.
	Secret    string
	SecretUID types.UID
	// Pod is the pod that the token ends with; empty if it is not bound to one.
	Pod    string
	PodUID types.UID
	// Issued and Expires bound its life. Expires is zero for a token that never ends.
	Issued, Expires time.Time
}

// Parse reads the claims of a token. It reports an error for what is no token of a ServiceAccount.
func Parse(token string) (Claims, error) {
	var said struct {
		Subject string `json:"sub"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
		Private struct {
			Secret struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"secret"`
			Pod struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if err := read(token, &said); err != nil {
		return Claims{}, err
	}
	namespace, account, err := serviceaccount.SplitUsername(said.Subject)
	if err != nil {
		return Claims{}, errors.New("it is not a ServiceAccount's")
	}
	claims := Claims{
		Namespace: namespace, Account: account, Secret: said.Private.Secret.Name, SecretUID: said.Private.Secret.UID,
		Pod: said.Private.Pod.Name, PodUID: said.Private.Pod.UID,
	}
	if said.Expires != 0 {
		claims.Issued, claims.Expires = time.Unix(said.Issued, 0), time.Unix(said.Expires, 0)
	}
	return claims, nil
}

// Audiences returns whom a token says that it is for; none for what is no JSON web token.
func Audiences(token string) []string {
	var said struct {
		Audiences json.RawMessage `json:"aud"`
	}
	if read(token, &said) != nil {
		return nil
	}
	var one string
	if json.Unmarshal(said.Audiences, &one) == nil {
		return []string{one}
	}
	var all []string
	if json.Unmarshal(said.Audiences, &all) != nil {
		return nil
	}
	return all
}

// read reads what a JSON web token says.
func read(token string, into any) error {
	parts := strings.Split(token, ".")
	if len(token) > longest || len(parts) != 3 {
		return errors.New("it is not a JSON web token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return fmt.Errorf("its claims are not encoded in base64: %w", err)
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("its claims are not JSON: %w", err)
	}
	return nil
}

// Ends reports whether the token ends by itself.
func (c Claims) Ends() bool { return !c.Expires.IsZero() }

// Renewable reports whether another token can take its place that ends with the same Secret.
func (c Claims) Renewable() bool { return c.Ends() && c.Secret != "" && c.lifetime() > 0 }

// lifetime is how long the token is good for as a whole.
func (c Claims) lifetime() time.Duration { return c.Expires.Sub(c.Issued) }

// Seconds is the lifetime as a request for another token takes it.
func (c Claims) Seconds() int64 { return int64(c.lifetime() / time.Second) }

const (
	// A token is renewed after half its life, and up to a tenth later, so that clusters that joined together are not all renewed at once.
	renewedAfter = 2
	spread       = 10
	// One that is in the last quarter of its life should have been renewed long ago.
	late = 4
	// What fails is tried again this many times in a lifetime, within bounds.
	attempts     = 40
	soonestAgain = 10 * time.Second
	latestAgain  = 5 * time.Minute
)

// Due is when to renew the token. share, from 0 to 1, says how much of the time over which renewals are spread to wait.
func (c Claims) Due(share float64) time.Time {
	return c.Issued.Add(c.lifetime()/renewedAfter + time.Duration(share*float64(c.lifetime()/spread)))
}

// Again is how long to wait after a renewal that failed.
func (c Claims) Again() time.Duration {
	return min(max(c.lifetime()/attempts, soonestAgain), latestAgain)
}

// Late reports whether the token should have been renewed long ago.
func (c Claims) Late(now time.Time) bool {
	return c.Ends() && c.Expires.Sub(now) < c.lifetime()/late
}

// Expired reports whether the token is worth nothing any more.
func (c Claims) Expired(now time.Time) bool { return c.Ends() && !now.Before(c.Expires) }

// Follows returns an error unless next may take the token's place: it is for the same ServiceAccount, ends with the same Secret, and later.
func (c Claims) Follows(next Claims) error {
	switch {
	case next.Namespace != c.Namespace || next.Account != c.Account:
		return fmt.Errorf("the token that the cluster gave is for ServiceAccount %s/%s, not %s/%s", next.Namespace, next.Account, c.Namespace, c.Account)
	case next.Secret != c.Secret || next.SecretUID != c.SecretUID:
		return fmt.Errorf("the token that the cluster gave is not bound to Secret %s/%s", c.Namespace, c.Secret)
	case !next.Renewable() || !next.Expires.After(c.Expires):
		return errors.New("the token that the cluster gave does not expire later than the present one")
	}
	return nil
}

// BoundTo names the Secret that the token ends with, as NAMESPACE/NAME; "" for none.
func (c Claims) BoundTo() string {
	if c.Secret == "" {
		return ""
	}
	return c.Namespace + "/" + c.Secret
}

// Ending says with what the token ends. The condition of a cluster carries it, which stays the same while tokens follow one another.
func (c Claims) Ending() string {
	return fmt.Sprintf("it is valid as long as Secret %s exists there", c.BoundTo())
}
