package promotions

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"strings"
)

// headerSignature has the algorithm, and after a "=" the HMAC of the body in hexadecimal.
const headerSignature = "X-Signature"

// algorithms are the hashes that signatures may be made by.
var algorithms = map[string]func() hash.Hash{
	"sha224": sha256.New224,
	"sha256": sha256.New,
	"sha384": sha512.New384,
	"sha512": sha512.New,
}

// signed reports whether a signature is the one of a body by a key. Nothing is signed by an empty key.
func signed(signature string, body, key []byte) bool {
	name, digest, cut := strings.Cut(signature, "=")
	algorithm, known := algorithms[name]
	got, err := hex.DecodeString(digest)
	if !cut || !known || err != nil || len(key) == 0 {
		return false
	}
	mac := hmac.New(algorithm, key)
	mac.Write(body)
	return hmac.Equal(got, mac.Sum(nil))
}
