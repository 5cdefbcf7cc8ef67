// Everything of the platform in one resource group. docs/how-to/azure.md tells what runs where, and who may do what.

@description('The beginning of all names.')
@minLength(3)
@maxLength(11)
param name string = 'graticule'

@description('Where everything is.')
param location string = resourceGroup().location

@description('The images of the processes.')
param images {
  gateway: string
  orchestrator: string
  worker: string
  serve: string
}

@description('A container registry of this resource group that has the images; empty: everybody may pull them.')
param registryName string = ''

@description('The gateway as a Functions app, instead of a container.')
param gatewayAsFunctions bool = false

@description('Workers log in to the database; without it they report by HTTP, and features cannot be loaded.')
param workersReachDatabase bool = true

@description('Addresses, or ranges, from which partners bring their files.')
param partnerAddresses string[] = []

@description('Whose bearer tokens are accepted; empty: nobody is.')
param oidcIssuer string = ''

@description('For whom the tokens must be made out.')
param oidcAudience string = ''

@description('The size of the database server.')
param databaseSize string = 'Standard_D4ds_v5'

@description('The disk of the database server, in GiB.')
param databaseDiskGiB int = 256

@description('How many workers of each kind run at most.')
param mostWorkers int = 10

@description('Jobs that ended so long ago are removed every night.')
param keepJobs string = '90d'

@description('How long logs are kept, in days.')
param logDays int = 30

@description('The key of the first admin, who makes all other clients.')
@secure()
@minLength(32)
param adminKey string

@description('What the gateway signs with for the orchestrator.')
@secure()
@minLength(32)
param serviceKey string

@description('What the gateway signs with for the services.')
@secure()
@minLength(32)
param serveKey string

@description('What workers show when they report by HTTP.')
@secure()
@minLength(32)
param workerToken string

@description('What callbacks to partners are signed with.')
@secure()
@minLength(32)
param webhookSecret string

var unique = take(uniqueString(resourceGroup().id), 8)
var uniqueName = '${name}-${unique}'
var plainName = replace(name, '-', '')
var databaseName = 'graticule'
var lightQueue = 'functionapp-tasks'
var heavyQueue = 'container-tasks'
var jobQueue = 'orchestrator-jobs'
var registryServer = empty(registryName) ? '' : (registry!.outputs.server)
var identityOf = identities.outputs.identities
var principals = identities.outputs.principals

module identities 'identities.bicep' = {
  name: 'identities'
  params: {
    name: name
    location: location
  }
}

module network 'network.bicep' = {
  name: 'network'
  params: {
    name: name
    location: location
  }
}

module registry 'registry.bicep' = if (!empty(registryName)) {
  name: 'registry'
  params: {
    name: registryName
    processes: ['gateway', 'orchestrator', 'worker', 'serveInternal', 'serveExternal', 'operations']
    principals: principals
  }
}

module database 'database.bicep' = {
  name: 'database'
  params: {
    name: uniqueName
    location: location
    databaseName: databaseName
    subnet: network.outputs.databaseSubnet
    zone: network.outputs.databaseZone
    size: databaseSize
    diskGiB: databaseDiskGiB
    administrator: {
      name: identityOf.operations.name
      principalId: principals.operations
    }
  }
}

module messaging 'messaging.bicep' = {
  name: 'messaging'
  params: {
    name: uniqueName
    location: location
    queueNames: [jobQueue, lightQueue, heavyQueue]
    principals: principals
    grants: [
      { process: 'orchestrator', role: 'Azure Service Bus Data Receiver', queue: jobQueue }
      { process: 'orchestrator', role: 'Azure Service Bus Data Sender', queue: lightQueue }
      { process: 'orchestrator', role: 'Azure Service Bus Data Sender', queue: heavyQueue }
      { process: 'worker', role: 'Azure Service Bus Data Receiver', queue: lightQueue }
      { process: 'worker', role: 'Azure Service Bus Data Receiver', queue: heavyQueue }
      { process: 'scaler', role: 'Azure Service Bus Data Owner', queue: lightQueue }
      { process: 'scaler', role: 'Azure Service Bus Data Owner', queue: heavyQueue }
    ]
  }
}

module bronze 'storage.bicep' = {
  name: 'bronze'
  params: {
    name: '${plainName}bro${unique}'
    location: location
    containerNames: ['bronze']
    subnets: [network.outputs.appsSubnet]
    addresses: partnerAddresses
    principals: principals
    grants: [
      { process: 'worker', role: 'Storage Blob Data Reader' }
      { process: 'worker', role: 'Storage Blob Delegator' }
      { process: 'orchestrator', role: 'Storage Blob Data Reader' }
    ]
  }
}

module silver 'storage.bicep' = {
  name: 'silver'
  params: {
    name: '${plainName}sil${unique}'
    location: location
    containerNames: ['silver', 'outputs']
    subnets: [network.outputs.appsSubnet, network.outputs.functionsSubnet]
    principals: principals
    grants: [
      { process: 'worker', role: 'Storage Blob Data Contributor' }
      { process: 'worker', role: 'Storage Blob Delegator' }
      { process: 'serveInternal', role: 'Storage Blob Delegator' }
      { process: 'operations', role: 'Storage Blob Data Contributor' }
    ]
    containerGrants: [
      { process: 'gateway', role: 'Storage Blob Data Reader', container: 'outputs' }
      { process: 'orchestrator', role: 'Storage Blob Data Contributor', container: 'outputs' }
      { process: 'orchestrator', role: 'Storage Blob Data Reader', container: 'silver' }
      { process: 'serveInternal', role: 'Storage Blob Data Reader', container: 'silver' }
    ]
  }
}

module external 'storage.bicep' = {
  name: 'external'
  params: {
    name: '${plainName}ext${unique}'
    location: location
    containerNames: ['external']
    subnets: [network.outputs.appsSubnet]
    principals: principals
    grants: [
      { process: 'worker', role: 'Storage Blob Data Contributor' }
      { process: 'serveExternal', role: 'Storage Blob Delegator' }
      { process: 'operations', role: 'Storage Blob Data Contributor' }
    ]
    containerGrants: [
      { process: 'serveExternal', role: 'Storage Blob Data Reader', container: 'external' }
    ]
  }
}

module vault 'vault.bicep' = {
  name: 'vault'
  params: {
    name: uniqueName
    location: location
    secretNames: ['admin-key', 'service-key', 'serve-key', 'worker-token', 'webhook-secret']
    secrets: {
      'admin-key': adminKey
      'service-key': serviceKey
      'serve-key': serveKey
      'worker-token': workerToken
      'webhook-secret': webhookSecret
    }
    principals: principals
    grants: [
      { process: 'gateway', role: 'Key Vault Secrets User', secret: 'admin-key' }
      { process: 'gateway', role: 'Key Vault Secrets User', secret: 'service-key' }
      { process: 'gateway', role: 'Key Vault Secrets User', secret: 'serve-key' }
      { process: 'orchestrator', role: 'Key Vault Secrets User', secret: 'admin-key' }
      { process: 'orchestrator', role: 'Key Vault Secrets User', secret: 'service-key' }
      { process: 'orchestrator', role: 'Key Vault Secrets User', secret: 'worker-token' }
      { process: 'orchestrator', role: 'Key Vault Secrets User', secret: 'webhook-secret' }
      { process: 'worker', role: 'Key Vault Secrets User', secret: 'worker-token' }
      { process: 'serveInternal', role: 'Key Vault Secrets User', secret: 'serve-key' }
    ]
  }
}

module environment 'environment.bicep' = {
  name: 'environment'
  params: {
    name: name
    location: location
    subnet: network.outputs.appsSubnet
    logDays: logDays
  }
}

// A Functions app is outside of the environment, and reaches an orchestrator that is open to everyone: who is not known
// to it by a signed token is refused.
var orchestratorDomain = gatewayAsFunctions ? environment.outputs.domain : 'internal.${environment.outputs.domain}'
var orchestratorUrl = 'https://${name}-orchestrator.${orchestratorDomain}'
var serveUrl = 'https://${name}-serve.internal.${environment.outputs.domain}'
var externalServeUrl = 'https://${name}-public.${environment.outputs.domain}'
var functionsName = '${name}-gateway-${unique}'
var publicUrl = gatewayAsFunctions ? 'https://${functionsName}.azurewebsites.net' : 'https://${name}-gateway.${environment.outputs.domain}'

var databaseVariables = [
  { name: 'GRATICULE_POSTGRES_HOST', value: database.outputs.host }
  { name: 'GRATICULE_POSTGRES_DB', value: databaseName }
  { name: 'GRATICULE_USE_MANAGED_IDENTITY', value: 'true' }
]
var storageVariables = [
  { name: 'GRATICULE_STORAGE', value: 'azure' }
  { name: 'GRATICULE_AZURE_STORAGE_ACCOUNT_NAME', value: silver.outputs.name }
  { name: 'GRATICULE_AZURE_STORAGE_ACCOUNTS', value: 'bronze=${bronze.outputs.name},external=${external.outputs.name}' }
  { name: 'GRATICULE_AZURE_STORAGE_ENDPOINT', value: 'https://{account}.blob.${az.environment().suffixes.storage}' }
]
var brokerVariables = [
  { name: 'GRATICULE_TRANSPORT', value: 'servicebus' }
  { name: 'GRATICULE_SERVICE_BUS_FQDN', value: messaging.outputs.host }
]
var accessVariables = [
  { name: 'GRATICULE_OIDC_ISSUER', value: oidcIssuer }
  { name: 'GRATICULE_OIDC_AUDIENCE', value: oidcAudience }
  { name: 'GRATICULE_PUBLIC_URL', value: publicUrl }
  { name: 'GRATICULE_SERVE_URL', value: serveUrl }
  { name: 'GRATICULE_EXTERNAL_SERVE_URL', value: externalServeUrl }
]
// The addresses from which the ingress of an environment calls its apps; what it forwards names the caller.
var ingressVariables = [
  { name: 'GRATICULE_TRUSTED_PROXIES', value: '100.100.0.0/16' }
]
var gatewayVariables = [
  { name: 'GRATICULE_POSTGRES_USER', value: identityOf.gateway.name }
  { name: 'GRATICULE_ORCHESTRATOR_URL', value: orchestratorUrl }
  { name: 'GRATICULE_PROXY_TARGETS', value: 'serve=${serveUrl}' }
]
var gatewaySecrets = [
  { variable: 'GRATICULE_ADMIN_KEY', secret: 'admin-key' }
  { variable: 'GRATICULE_SERVICE_KEY', secret: 'service-key' }
  { variable: 'GRATICULE_SERVE_KEY', secret: 'serve-key' }
]
var workerLogin = [
  { name: 'GRATICULE_POSTGRES_USER', value: identityOf.worker.name }
]
var workerCallback = [
  { name: 'GRATICULE_DAG_CALLBACK_URL', value: orchestratorUrl }
]
var workerVariables = concat(
  brokerVariables,
  storageVariables,
  workersReachDatabase ? concat(databaseVariables, workerLogin) : workerCallback
)
var workerSecrets = [
  { variable: 'GRATICULE_WORKER_TOKEN', secret: 'worker-token' }
]

module gateway 'process.bicep' = if (!gatewayAsFunctions) {
  name: 'gateway'
  params: {
    name: '${name}-gateway'
    location: location
    environmentId: environment.outputs.id
    image: images.gateway
    registryServer: registryServer
    arguments: ['gateway']
    port: 8000
    reach: 'everyone'
    identity: identityOf.gateway
    variables: concat(ingressVariables, databaseVariables, storageVariables, accessVariables, gatewayVariables)
    secrets: gatewaySecrets
    vaultUri: vault.outputs.uri
    cpu: '0.5'
    memory: '1Gi'
    atLeast: 2
    atMost: 10
  }
}

module gatewayFunctions 'functions.bicep' = if (gatewayAsFunctions) {
  name: 'gateway-functions'
  params: {
    name: functionsName
    location: location
    hostAccountName: '${plainName}fun${unique}'
    subnet: network.outputs.functionsSubnet
    identity: identityOf.gateway
    principalId: principals.gateway
    variables: concat(ingressVariables, databaseVariables, storageVariables, accessVariables, gatewayVariables)
    secrets: gatewaySecrets
    vaultUri: vault.outputs.uri
  }
}

module orchestrator 'process.bicep' = {
  name: 'orchestrator'
  params: {
    name: '${name}-orchestrator'
    location: location
    environmentId: environment.outputs.id
    image: images.orchestrator
    registryServer: registryServer
    arguments: ['orchestrator']
    port: 8001
    reach: gatewayAsFunctions ? 'everyone' : 'environment'
    identity: identityOf.orchestrator
    variables: concat(ingressVariables, databaseVariables, storageVariables, brokerVariables, accessVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.orchestrator.name }
    ])
    secrets: [
      { variable: 'GRATICULE_ADMIN_KEY', secret: 'admin-key' }
      { variable: 'GRATICULE_SERVICE_KEY', secret: 'service-key' }
      { variable: 'GRATICULE_WORKER_TOKEN', secret: 'worker-token' }
      { variable: 'GRATICULE_WEBHOOK_SECRET', secret: 'webhook-secret' }
    ]
    vaultUri: vault.outputs.uri
    cpu: '1'
    memory: '2Gi'
    atLeast: 2
    atMost: 4
  }
}

module lightWorker 'process.bicep' = {
  name: 'worker-light'
  params: {
    name: '${name}-worker-light'
    location: location
    environmentId: environment.outputs.id
    image: images.worker
    registryServer: registryServer
    arguments: ['worker', '--queues', lightQueue]
    port: 8002
    reach: 'probes'
    identity: identityOf.worker
    variables: workerVariables
    secrets: workerSecrets
    vaultUri: vault.outputs.uri
    cpu: '1'
    memory: '2Gi'
    atLeast: 1
    atMost: mostWorkers
    scalerId: identityOf.scaler.id
    scaleRules: [
      {
        name: 'tasks'
        custom: {
          type: 'azure-servicebus'
          metadata: {
            namespace: uniqueName
            queueName: lightQueue
            messageCount: '64'
          }
          identity: identityOf.scaler.id
        }
      }
    ]
  }
}

module heavyWorker 'process.bicep' = {
  name: 'worker-heavy'
  params: {
    name: '${name}-worker-heavy'
    location: location
    environmentId: environment.outputs.id
    image: images.worker
    registryServer: registryServer
    arguments: ['worker', '--queues', heavyQueue, '--concurrency', '4']
    port: 8002
    reach: 'probes'
    identity: identityOf.worker
    variables: workerVariables
    secrets: workerSecrets
    vaultUri: vault.outputs.uri
    cpu: '4'
    memory: '8Gi'
    atLeast: 0
    atMost: mostWorkers
    scalerId: identityOf.scaler.id
    scaleRules: [
      {
        name: 'tasks'
        custom: {
          type: 'azure-servicebus'
          metadata: {
            namespace: uniqueName
            queueName: heavyQueue
            messageCount: '4'
          }
          identity: identityOf.scaler.id
        }
      }
    ]
  }
}

module serveInternal 'process.bicep' = {
  name: 'serve-internal'
  params: {
    name: '${name}-serve'
    location: location
    environmentId: environment.outputs.id
    image: images.serve
    registryServer: registryServer
    arguments: ['serve', '--audience', 'internal']
    port: 8003
    reach: 'environment'
    identity: identityOf.serveInternal
    variables: concat(ingressVariables, databaseVariables, storageVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.serveInternal.name }
      { name: 'GRATICULE_SERVE_URL', value: serveUrl }
    ])
    secrets: [
      { variable: 'GRATICULE_SERVE_KEY', secret: 'serve-key' }
    ]
    vaultUri: vault.outputs.uri
    cpu: '2'
    memory: '4Gi'
    atLeast: 1
    atMost: 10
  }
}

module serveExternal 'process.bicep' = {
  name: 'serve-external'
  params: {
    name: '${name}-public'
    location: location
    environmentId: environment.outputs.id
    image: images.serve
    registryServer: registryServer
    arguments: ['serve', '--audience', 'external']
    port: 8003
    reach: 'everyone'
    identity: identityOf.serveExternal
    variables: concat(ingressVariables, databaseVariables, storageVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.serveExternal.name }
      { name: 'GRATICULE_EXTERNAL_SERVE_URL', value: externalServeUrl }
    ])
    vaultUri: vault.outputs.uri
    cpu: '2'
    memory: '4Gi'
    atLeast: 1
    atMost: 10
  }
}

module migrate 'job.bicep' = {
  name: 'migrate'
  params: {
    name: '${name}-migrate'
    location: location
    environmentId: environment.outputs.id
    image: images.orchestrator
    registryServer: registryServer
    arguments: ['schema', 'migrate']
    identity: identityOf.operations
    variables: concat(databaseVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.operations.name }
    ])
  }
}

module logins 'job.bicep' = {
  name: 'logins'
  params: {
    name: '${name}-logins'
    location: location
    environmentId: environment.outputs.id
    image: images.orchestrator
    registryServer: registryServer
    arguments: [
      'azure'
      'logins'
      'ensure'
      'gateway=${identityOf.gateway.name}:${principals.gateway}'
      'orchestrator=${identityOf.orchestrator.name}:${principals.orchestrator}'
      'worker=${identityOf.worker.name}:${principals.worker}'
      'serve_internal=${identityOf.serveInternal.name}:${principals.serveInternal}'
      'serve_external=${identityOf.serveExternal.name}:${principals.serveExternal}'
    ]
    identity: identityOf.operations
    variables: concat(databaseVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.operations.name }
    ])
  }
}

module prune 'job.bicep' = {
  name: 'prune'
  params: {
    name: '${name}-prune'
    location: location
    environmentId: environment.outputs.id
    image: images.orchestrator
    registryServer: registryServer
    arguments: ['prune', '--older-than', keepJobs]
    identity: identityOf.operations
    variables: concat(databaseVariables, storageVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.operations.name }
    ])
    schedule: '0 3 * * *'
  }
}

module verify 'job.bicep' = {
  name: 'verify'
  params: {
    name: '${name}-verify'
    location: location
    environmentId: environment.outputs.id
    image: images.orchestrator
    registryServer: registryServer
    arguments: ['verify']
    identity: identityOf.operations
    variables: concat(databaseVariables, storageVariables, [
      { name: 'GRATICULE_POSTGRES_USER', value: identityOf.operations.name }
    ])
    schedule: '0 4 * * 0'
    timeout: 86400
  }
}

@description('The front door, for partners and operators.')
output gatewayUrl string = publicUrl

@description('The services for the public.')
output externalServeUrl string = externalServeUrl

@description('The database server.')
output databaseHost string = database.outputs.host

@description('The namespace of the queues.')
output serviceBusHost string = messaging.outputs.host

@description('Where partners bring their files.')
output bronzeEndpoint string = bronze.outputs.endpoint
