package config

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	mcs "sigs.k8s.io/mcs-api/config/crd"
)

func TestTheDefinitionsOfTheMultiClusterServicesAPIAreItsOwn(t *testing.T) {
	for file, want := range map[string][]byte{"crds/mcs/serviceexports.yaml": mcs.ServiceExportCRD, "crds/mcs/serviceimports.yaml": mcs.ServiceImportCRD} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not that of the module: copy it from there", file)
		}
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "crds/mcs")
	if err != nil || len(made.Resources()) != 2 {
		t.Errorf("kubectl apply -k makes %v of them: %v", made, err)
	}
}
