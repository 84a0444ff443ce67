/** Whom the server runs as: nothing means ourselves. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

// "nobody" on Linux and macOS by number, so that no user has to exist or be created. A file system does not ask
// whether a number has a name.
const nobody = { uid: 65_534, gid: 65_534 } as const

/** PostgreSQL refuses to run as root, so root gives its rights up for it. */
export function accountForServer(): Account {
  return process.getuid?.() === 0 ? nobody : {}
}
