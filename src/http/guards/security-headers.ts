/** Security headers: browsers must not execute a response, frame it, or guess its type. */
import type { FastifyHelmetOptions } from '@fastify/helmet'

/**
 * The headers of every response except the page. Constant, because helmet computes them for each request, which doubles the cost
 * of a short one.
 */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

/**
 * A script injected into the page could read the typed key: everything is loaded from this server, and nothing may be
 * sent elsewhere.
 */
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
  // The proxy that terminates TLS sets this header; it knows the whole domain.
  strictTransportSecurity: false,
} satisfies FastifyHelmetOptions
