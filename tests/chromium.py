"""A headless Chromium, driven through a pair of pipes by its DevTools protocol: pages are opened, asked, and drawn."""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 100  # seconds that anything may take on a busy machine

# What can be read on a page, in frames and shadow trees, too.
READ = '''(() => {
  const texts = [];
  const visit = node => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.textContent);
    if (['STYLE', 'SCRIPT', 'TEMPLATE'].includes(node.nodeName)) return;
    if (node.shadowRoot) visit(node.shadowRoot);
    try { if (node.contentDocument) visit(node.contentDocument.documentElement); } catch (e) { /* another site's */ }
    node.childNodes.forEach(visit);
  };
  visit(document.documentElement);
  return texts.join(' ').replace(/\\s+/g, ' ');
})()'''

# Chromium reads from descriptor 3 and writes to 4, either of which may be the number of another's end.
START = '''
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(reads, 3), os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
'''
CLICK = '''(text => {
  let found = null;
  const visit = node => {
    if (node.nodeType === Node.ELEMENT_NODE && node.textContent.trim() === text) found = node;
    if (node.shadowRoot) visit(node.shadowRoot);
    node.childNodes.forEach(visit);
  };
  visit(document.documentElement);
  if (found) found.click();
  return found !== null;
})'''


class Chromium:
    def __init__(self, width=1000, height=600):
        self.profile = tempfile.mkdtemp(prefix='chromium')
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # WebGL is computed by the CPU.
        command = [shutil.which('chromium'), '--headless=new', '--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader',
                   '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
                   '--hide-scrollbars', '--mute-audio', f'--user-data-dir={self.profile}', f'--window-size={width},{height}',
                   '--remote-debugging-pipe', 'about:blank']
        self.process = subprocess.Popen([sys.executable, '-c', START, str(theirs_in), str(theirs_out), *command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.reads, self.writes, self.rest, self.calls, self.session = ours_in, ours_out, b'', 0, None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def end(self):
        for pipe in (self.reads, self.writes):
            os.close(pipe)  # it ends when nobody drives it
        self.process.wait(30)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **params):
        self.calls += 1
        message = {'id': self.calls, 'method': method, 'params': params, **({'sessionId': self.session} if self.session else {})}
        os.write(self.writes, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive()
            if answer.get('id') == self.calls:
                assert 'error' not in answer, answer
                return answer['result']

    def receive(self):
        while b'\0' not in self.rest:
            assert select.select([self.reads], [], [], LIMIT)[0], 'Chromium does not answer'
            part = os.read(self.reads, 1 << 20)
            assert part, 'Chromium has ended'
            self.rest += part
        message, self.rest = self.rest.split(b'\0', 1)
        return json.loads(message)

    def evaluate(self, expression):
        return self.call('Runtime.evaluate', expression=expression, returnByValue=True)['result'].get('value')

    def open(self, address, *texts):
        """Opens the page, and waits until all |texts| are on it."""
        self.call('Page.navigate', url='about:blank')
        self.call('Page.navigate', url=address)
        self.wait_for(*texts)

    def wait_for(self, *texts):
        end, shown = time.monotonic() + LIMIT, ''
        while not all(text in shown for text in texts):
            assert time.monotonic() < end, f'the page does not show {texts}, but: {shown[-3000:]}'
            time.sleep(0.1)
            shown = self.evaluate(READ) or ''

    def click(self, text):
        """Clicks at the innermost element that says |text| and no more, once there is one."""
        end = time.monotonic() + LIMIT
        while not self.evaluate(f'{CLICK}({json.dumps(text)})'):
            assert time.monotonic() < end, f'there is no {text!r} to click at'
            time.sleep(0.1)

    def picture(self):
        """The page as PNG."""
        return base64.b64decode(self.call('Page.captureScreenshot', format='png', optimizeForSpeed=False)['data'])
