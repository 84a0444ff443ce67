// A network that can fail, in front of a server: connections that end, and connections that no longer carry anything.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { collector } from './signals.ts'

export interface Network extends AsyncDisposable {
  /** The address that was given, through this proxy. */
  readonly url: string
  /** Ends every connection there is with a reset. Later ones pass. */
  cut(): void
  /**
   * From now on the connections there are carry nothing, and nobody is told: everything that is sent is lost, or only the answers.
   * They stay so for ever, as when a firewall has forgotten them. Later ones pass.
   */
  swallow(what: 'everything' | 'answers'): void
  /** Until it is told to let through again: later connections are made, and carry nothing, for ever. */
  swallowLater(): void
  letThrough(): void
  /** Resolves when that many connections have been made since the start. */
  accepted(count: number): Promise<unknown>
}

interface Link {
  readonly client: Socket
  readonly server: Socket
  carriesRequests: boolean
  carriesAnswers: boolean
}

export async function startProxy(target: string): Promise<Network> {
  const { hostname, port } = new URL(target)
  const links = new Set<Link>()
  const accepted = collector<Link>('connections')
  let swallowsLater = false
  // Half open, or Node would answer an end by itself, on a connection that carries nothing.
  const listening = createServer({ allowHalfOpen: true }, (client) => {
    const server = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    const link = { client, server, carriesRequests: !swallowsLater, carriesAnswers: !swallowsLater }
    links.add(link)
    accepted.add(link)
    carry(link, () => links.delete(link))
  })
  listening.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const url = new URL(target)
  url.port = String((listening.address() as AddressInfo).port)
  const cut = (): void => {
    for (const { client, server } of links) {
      client.resetAndDestroy()
      server.resetAndDestroy()
    }
  }
  return {
    url: url.href,
    cut,
    accepted: (count) => accepted.take(count),
    swallow(what) {
      for (const link of links) {
        link.carriesAnswers = false
        link.carriesRequests &&= what === 'answers'
      }
    },
    swallowLater() {
      swallowsLater = true
    },
    letThrough() {
      swallowsLater = false
    },
    async [Symbol.asyncDispose]() {
      const closed = once(listening, 'close')
      listening.close()
      cut()
      await closed
    },
  }
}

/** Both ways, as long as the link carries. What ends on one side ends on the other: an end is a message, too. */
function carry(link: Link, ended: () => void): void {
  const { client, server } = link
  client.on('data', (data) => link.carriesRequests && server.write(data))
  server.on('data', (data) => link.carriesAnswers && client.write(data))
  client.on('end', () => link.carriesRequests && server.end())
  server.on('end', () => link.carriesAnswers && client.end())
  client.on('close', () => {
    server.destroy()
    ended()
  })
  server.on('close', () => link.carriesAnswers && client.destroy())
  // A reset is an error on the other side; its close is what counts.
  for (const socket of [client, server]) socket.on('error', () => {})
}
