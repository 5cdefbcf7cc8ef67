import { assets } from '../../texts/assets'
import { CopyButton } from '../../ui/parts'
import { grouped, type Address, type Served } from './addresses'

const texts = assets.services

/** Where versions are served: to open, and to copy. */
export function Addresses({ items, none }: { items: Served[]; none: string }) {
  const addresses = grouped(items)
  if (addresses.internal.length + addresses.public.length === 0) return <p className="soft">{none}</p>
  return (
    <div className="assets-addresses">
      <Group name={texts.internal} addresses={addresses.internal} />
      <Group name={texts.public} addresses={addresses.public} />
    </div>
  )
}

function Group({ name, addresses }: { name: string; addresses: Address[] }) {
  if (addresses.length === 0) return null
  return (
    <div role="group" aria-label={name}>
      <h3>{name}</h3>
      <ul>
        {addresses.map((address) => (
          <Entry key={address.url} address={address} />
        ))}
      </ul>
    </div>
  )
}

function Entry({ address: { service, ordinal, url } }: { address: Address }) {
  const name = texts.names[service] ?? service
  return (
    <li>
      <span className="assets-service">
        {name} <span className="soft">{assets.version(ordinal)}</span>
      </span>
      <a className="truncate mono" href={url} title={url} target="_blank" rel="noreferrer">
        {url}
      </a>
      <CopyButton text={url} of={texts.address(name)} />
    </li>
  )
}
