import type { StartOptions } from '@postbox/embedded'

const binaries = process.env['POSTGRES_BIN']

/** The server of this run: POSTGRES_BIN names the folder of its binaries, without it they are the embedded ones. */
export const chosenBinaries: Pick<StartOptions, 'binaries'> = binaries ? { binaries } : {}
