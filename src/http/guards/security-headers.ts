/** Security headers: browsers must not run a response, frame it, or guess its type. */
import type { FastifyHelmetOptions } from '@fastify/helmet'

/** Of every response except the page. Constant, because helmet computes them for each request, which doubles the cost of a short one. */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/** A script that got into the page could read the typed key: everything is our own, and nothing may be sent elsewhere. */
export const PAGE_SECURITY_HEADERS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      'default-src': ["'none'"],
      'script-src': ["'self'"],
      'style-src': ["'self'"],
      'img-src': ["'self'", 'data:'],
      'connect-src': ["'self'"],
      'base-uri': ["'none'"],
      'form-action': ["'none'"],
      'frame-ancestors': ["'none'"],
    },
  },
  frameguard: { action: 'deny' },
  // Left to the proxy that terminates TLS, which knows the whole domain.
  strictTransportSecurity: false,
} satisfies FastifyHelmetOptions
