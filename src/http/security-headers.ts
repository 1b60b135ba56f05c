/** What browsers are told about answers: nothing here may run, be framed, or be taken for another type. */
import type { FastifyHelmetOptions } from '@fastify/helmet'

const NOTHING = {
  'default-src': ["'none'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'frame-ancestors': ["'none'"],
}

export const SECURITY_HEADERS = {
  contentSecurityPolicy: { useDefaults: false, directives: NOTHING },
  // For whoever speaks TLS in front of this server, which knows the whole domain.
  strictTransportSecurity: false,
} satisfies FastifyHelmetOptions

/** A script that got into the page could read the typed key: everything is our own, and nothing may be sent elsewhere. */
export const PAGE_SECURITY_HEADERS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      ...NOTHING,
      'script-src': ["'self'"],
      'style-src': ["'self'"],
      'img-src': ["'self'", 'data:'],
      'connect-src': ["'self'"],
    },
  },
} satisfies FastifyHelmetOptions
