'use strict';
// Loaded into every Node that runs under Rewind: brings clients that ignore proxy variables to the gateway.
// TLS to a recorded host goes to the gateway's port with its server name, by which the gateway knows the host. Plain
// HTTP goes there as it is, with its Host header: to any host where fetch or the http module makes the connection (so
// that a model server nobody named is recorded, as HTTP_PROXY does for others), and to the addresses that base-URL
// variables name whoever makes it. In a replay, whatever would leave this machine goes there too, to be refused by name.
// Everything else is left alone. Errors here must never reach the agent.
//
// NODE_USE_ENV_PROXY would do a part of this from Node 22 on, but it loads fetch and TLS into every Node process
// (three times the start-up time) and Node 22 warns about it.

const PORT = Number(process.env.REWIND_GATEWAY_PORT);
const list = (name) => (process.env[name] || '').split(',').filter(Boolean);

function matches(pattern, host) {
  // As rewind.providers.hosts.matches.
  const parts = pattern.split('*');
  if (parts.length === 1) return host === pattern;
  if (!host.startsWith(parts[0])) return false;
  let at = parts[0].length;
  for (const part of parts.slice(1, -1)) {
    const found = host.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  const last = parts[parts.length - 1];
  return host.length - last.length >= at && host.endsWith(last);
}

const plainName = (host) => String(host).toLowerCase().replace(/^\[|\]$|\.$/g, '');

function carefully(act) {
  try {
    act();
  } catch (problem) {
    process.stderr.write(`rewind: Node could not be prepared: ${problem}; some calls may not be recorded\n`);
  }
}

function install() {
  const net = require('node:net');
  const hosts = list('REWIND_GATEWAY_HOSTS');
  const plain = new Set(list('REWIND_GATEWAY_PLAIN'));
  const known = new Map();
  const offline = process.env.REWIND_OFFLINE === '1';
  const live = list('REWIND_LIVE_HOSTS');

  function leavesThisMachine(host) {
    const name = plainName(host);
    if (['localhost', '::', '::1', '0.0.0.0'].includes(name) || name.endsWith('.localhost')) return false;
    return !/^(::ffff:)?127\./.test(name) && !live.some((pattern) => matches(pattern, name));
  }

  // Addresses are not recorded over TLS: without a name there is no SNI to go by.
  function recorded(host) {
    if (!known.has(host)) {
      const name = plainName(host);
      if (known.size > 1000) known.clear();
      known.set(host, name !== 'localhost' && !net.isIP(name) && hosts.some((pattern) => matches(pattern, name)));
    }
    return known.get(host);
  }

  const gateway = { host: '127.0.0.1', port: PORT, lookup: undefined, localAddress: undefined };
  const authority = () => require('node:fs').readFileSync(process.env.REWIND_GATEWAY_CA);

  // undici, and so fetch, says what it is about to connect to, and then does so before anything else can run.
  let announced;
  require('node:diagnostics_channel').subscribe('undici:client:beforeConnect', ({ connectParams: to }) => {
    announced = to.protocol === 'http:' ? plainName(to.hostname) + ':' + (to.port || 80) : undefined;
  });

  function redirected(socket, options) {
    if (!options || options.path || !options.port) return options;
    const host = options.host || 'localhost';
    const address = plainName(host) + ':' + options.port;
    // A TLS socket is known by its method: asking for the class would load the whole of tls into every process.
    if (typeof socket.setServername !== 'function') {
      if (Number(options.port) === PORT) watchTunnels();
      const speaksHttp = address === announced || '_agentKey' in options; // the key that http's agents sort by
      announced = undefined;
      const ours = speaksHttp || plain.has(address) || (offline && leavesThisMachine(host));
      return ours ? { ...options, ...gateway } : options;
    }
    const refused = offline && leavesThisMachine(host) && !recorded(host);
    if (!refused && (Number(options.port) !== 443 || !recorded(host))) return options;
    if (!options.servername) socket.setServername(plainName(host));
    // Roots of the client's own would not know the run's CA; NODE_EXTRA_CA_CERTS does not reach them.
    if (options.ca || options.secureContext) carefully(() => socket._tlsOptions.secureContext.context.addCACert(authority()));
    return { ...options, ...gateway };
  }

  // Every connection, of whichever module, is made by this method.
  const connect = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (...args) {
    const [first, second] = args;
    if (Array.isArray(first)) {
      first[0] = redirected(this, first[0]);
    } else if (typeof first === 'object' && first !== null) {
      args[0] = redirected(this, first);
    } else {
      const named = typeof second === 'string';
      const options = { port: first, host: named ? second : undefined };
      const aimed = redirected(this, options);
      if (aimed !== options) args.splice(0, named ? 2 : 1, aimed);
    }
    return connect.apply(this, args);
  };

  // TLS inside a proxy's tunnel makes no connection of its own, so its roots are seen to here.
  let watching = false;
  function watchTunnels() {
    if (watching) return;
    watching = true;
    const tls = require('node:tls');
    const tlsConnect = tls.connect;
    tls.connect = function (...args) {
      const at = args.findIndex((arg) => typeof arg === 'object' && arg !== null);
      const options = args[at];
      if (options && options.socket && options.ca && recorded(options.servername || options.host || '')) {
        carefully(() => (args[at] = { ...options, ca: [].concat(options.ca, authority()) }));
      }
      return tlsConnect.apply(this, args);
    };
    require('node:module').syncBuiltinESMExports(); // for `import { connect } from 'node:tls'`
  }
}

if (PORT > 0) carefully(install);
