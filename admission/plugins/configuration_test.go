package plugins_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/admission/webhook"
	"orch.io/controlplane/api/names"
)

// TestConfigurationFile checks that LoadConfig accepts the configuration kinds of each plugin.
func TestConfigurationFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admission.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: ValidatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: /a}}
- {name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.k8s.io/v1alpha1, kind: WebhookAdmission, kubeConfigFile: /b}}
- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: baseline}}}
- {name: EventRateLimit, configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Server, qps: 1, burst: 2}]}}
- {name: PodTolerationRestriction, configuration: {apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, default: [{key: a}]}}
- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: [{resource: pods}]}}
- {name: PodNodeSelector, configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}}}
- {name: ImagePolicyWebhook, configuration: {imagePolicy: {kubeConfigFile: /c, allowTTL: 50}}}
`), 0o600))
	config, warnings, err := admission.LoadConfig(path, plugins.Table(), names.Kubernetes)
	require.NoError(t, err)
	assert.Len(t, config, 8)
	assert.Equal(t, webhook.Config{KubeConfigFile: "/a"}, config["ValidatingAdmissionWebhook"])
	assert.Equal(t, webhook.Config{KubeConfigFile: "/b"}, config["MutatingAdmissionWebhook"])
	assert.Equal(t, []string{"apiserver.k8s.io/v1alpha1 WebhookAdmission is deprecated; use apiserver.config.k8s.io/v1 WebhookAdmissionConfiguration"}, warnings)
}
