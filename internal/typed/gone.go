package typed

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IgnoreGone passes over that an object is gone, or another one has its name.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
