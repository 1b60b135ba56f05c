/** Preloaded into a process under test: its TLS connections lead to the stand-in on this machine, whatever their host is. */
import { syncBuiltinESMExports } from 'node:module'
import tls from 'node:tls'

const port = Number(process.env['TEST_VENDOR_PORT'])
const connect = tls.connect.bind(tls)

tls.connect = ((options: tls.ConnectionOptions, ...rest: []) =>
  connect({ ...options, host: '127.0.0.1', port, rejectUnauthorized: false }, ...rest)) as typeof tls.connect
syncBuiltinESMExports()
