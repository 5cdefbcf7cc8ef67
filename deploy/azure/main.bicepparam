// What an installation has to say. The keys come from the environment of whoever deploys, and are in no file.
using 'main.bicep'

param images = {
  gateway: 'registry.example/graticule-gateway:0.1.0'
  orchestrator: 'registry.example/graticule-orchestrator:0.1.0'
  worker: 'registry.example/graticule-worker:0.1.0'
  serve: 'registry.example/graticule-worker:0.1.0'
}

param adminKey = readEnvironmentVariable('GRATICULE_ADMIN_KEY')
param serviceKey = readEnvironmentVariable('GRATICULE_SERVICE_KEY')
param serveKey = readEnvironmentVariable('GRATICULE_SERVE_KEY')
param workerToken = readEnvironmentVariable('GRATICULE_WORKER_TOKEN')
param webhookSecret = readEnvironmentVariable('GRATICULE_WEBHOOK_SECRET')
