import { contentTypeHeader, correlationIdHeader, type Headers, sourceHeader } from './headers.ts'
import type { Message } from './message.ts'
import type { PublishOptions } from './publish-options.ts'
import { isRecord } from './validate.ts'

/**
 * The options of a follow-on message: it belongs to the same business transaction as the message that led to it, and carries on those of
 * its headers that are to be propagated. What the handler gave wins. Never the content type: it is another body.
 */
export function followOnOptions(
  { headers, correlationId }: Pick<Message, 'headers' | 'correlationId'>,
  propagate: boolean | readonly string[],
  options: PublishOptions | undefined,
): PublishOptions | undefined {
  // Not ours to judge: what is wrong with them is said where all options are checked.
  if (options !== undefined && !isRecord(options)) return options
  const given: unknown = options?.headers
  // A Map would be copied as nothing.
  if (given !== undefined && !isPlain(given)) return options
  const ownNames = Object.keys(given ?? {}).map((name) => name.toLowerCase())
  const namesCorrelation = options?.correlationId !== undefined || ownNames.includes(correlationIdHeader)
  return {
    ...options,
    ...(namesCorrelation ? {} : { correlationId }),
    headers: { ...propagated(headers, propagate, ownNames), ...given },
  } as PublishOptions
}

function isPlain(value: unknown): value is Headers {
  return isRecord(value) && [null, Object.prototype].includes(Object.getPrototypeOf(value))
}

function propagated(
  headers: Headers,
  which: boolean | readonly string[],
  ownNames: readonly string[],
): Headers {
  if (which === false) return {}
  const wanted = which === true ? null : which.map((name) => name.toLowerCase())
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => {
      const lower = name.toLowerCase()
      if (lower === contentTypeHeader || lower === correlationIdHeader || ownNames.includes(lower))
        return false
      // Who published the message is not who publishes what follows from it.
      return wanted === null ? lower !== sourceHeader : wanted.includes(lower)
    }),
  )
}
