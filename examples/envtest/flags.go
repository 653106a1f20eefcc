package main

import "strings"

// Flags of kube-apiserver that have no effect here: this server has no etcd and no profiling, and needs
// no tuning of these parts. Flags that change access control are not in the list; they are errors.
const (
	// switches can be given without a value.
	switches = `
		aggregator-reject-forwarding-redirect allow-privileged audit-log-batch-throttle-enable audit-log-compress
		audit-log-truncate-enabled audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled
		contention-profiling disable-http2-serving emulation-forward-compatible enable-aggregator-routing
		enable-garbage-collector enable-logs-handler enable-priority-and-fairness
		encryption-provider-config-automatic-reload log-json-split-stream log-text-split-stream permit-address-sharing permit-port-sharing
		profiling runtime-config-emulation-forward-compatible service-account-extend-token-expiration
		shutdown-send-retry-after watch-cache
	`
	valueFlags = `
		allow-metric-labels allow-metric-labels-manifest apiserver-count audit-log-batch-buffer-size
		audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
		audit-log-batch-throttle-qps audit-log-format audit-log-mode audit-log-truncate-max-batch-size
		audit-log-truncate-max-event-size audit-log-version audit-webhook-batch-buffer-size audit-webhook-batch-initial-backoff
		audit-webhook-batch-max-size audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst
		audit-webhook-batch-throttle-qps audit-webhook-initial-backoff audit-webhook-mode
		audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version
		coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
		coordinated-leadership-retry-period cloud-config cloud-provider cors-allowed-origins debug-socket-path default-watch-cache-size delete-collection-workers
		disabled-metrics egress-selector-config-file emulated-version encryption-provider-config
		endpoint-reconciler-type etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
		etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout
		etcd-servers etcd-servers-overrides event-ttl external-hostname goaway-chance
		http2-max-streams-per-connection kubelet-port kubelet-read-only-port kubelet-timeout kubernetes-service-node-port lease-reuse-duration-seconds
		log-flush-frequency log-json-info-buffer-size log-text-info-buffer-size logging-format max-connection-bytes-per-sec
		min-compatibility-version
		peer-advertise-ip peer-advertise-port peer-ca-file
		shutdown-watch-termination-grace-period storage-backend
		storage-initialization-timeout storage-media-type strict-transport-security-directives tls-cipher-suites
		tls-curve-preferences tls-min-version tls-sni-cert-key tracing-config-file vmodule watch-cache-sizes
	`
)

// missingPlugins returns the admission plugins of kube-apiserver that this server does not have: they
// belong to alpha features, or check requests that only kubelets make.
func missingPlugins() []string {
	return []string{"ClusterTrustBundleAttest", "NodeDeclaredFeatureValidator", "PodGroupProtection", "PodResizeValidator", "PodTopologyLabels"}
}

// ignored returns the flags without effect. The value is true if the flag can be given without a value.
func ignored() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(switches) {
		all[name] = true
	}
	for name := range strings.FieldsSeq(valueFlags) {
		all[name] = false
	}
	return all
}
