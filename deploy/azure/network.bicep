// The network: containers, the database, which is reached from here alone, and the Functions app, if there is one.

@description('The beginning of all names.')
param name string

@description('Where the network is.')
param location string

var toStorage = [
  {
    service: 'Microsoft.Storage'
  }
]

resource network 'Microsoft.Network/virtualNetworks@2024-05-01' = {
  name: '${name}-network'
  location: location
  properties: {
    addressSpace: {
      addressPrefixes: [
        '10.20.0.0/16'
      ]
    }
    subnets: [
      {
        name: 'apps'
        properties: {
          addressPrefix: '10.20.0.0/23'
          serviceEndpoints: toStorage
          delegations: [
            {
              name: 'apps'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
      {
        name: 'database'
        properties: {
          addressPrefix: '10.20.2.0/27'
          delegations: [
            {
              name: 'database'
              properties: {
                serviceName: 'Microsoft.DBforPostgreSQL/flexibleServers'
              }
            }
          ]
        }
      }
      {
        name: 'functions'
        properties: {
          addressPrefix: '10.20.3.0/26'
          serviceEndpoints: toStorage
          delegations: [
            {
              name: 'functions'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
    ]
  }

  resource apps 'subnets' existing = {
    name: 'apps'
  }

  resource database 'subnets' existing = {
    name: 'database'
  }

  resource functions 'subnets' existing = {
    name: 'functions'
  }
}

resource zone 'Microsoft.Network/privateDnsZones@2020-06-01' = {
  name: '${name}.private.postgres.database.azure.com'
  location: 'global'

  resource link 'virtualNetworkLinks' = {
    name: '${name}-link'
    location: 'global'
    properties: {
      registrationEnabled: false
      virtualNetwork: {
        id: network.id
      }
    }
  }
}

@description('The subnet of the containers.')
output appsSubnet string = network::apps.id

@description('The subnet of the database.')
output databaseSubnet string = network::database.id

@description('The subnet of the Functions app.')
output functionsSubnet string = network::functions.id

@description('Where the database finds its name.')
output databaseZone string = zone.id
