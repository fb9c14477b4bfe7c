package storage

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/batch"
)

func changeBatch(storage map[string]rest.Storage, o Options) error {
	if err := changeCronJobs(storage); err != nil {
		return err
	}
	return changeWorkloads(storage, batch.GroupName, o)
}
